#include "tests/fuzz/support/model_mutator.h"

#include <onnx/onnx_pb.h>

#include <array>
#include <vector>

namespace parsimony::fuzz {
namespace {

constexpr std::array<const char*, 48> kOperators = {"Conv",
                                                    "ConvTranspose",
                                                    "Gemm",
                                                    "MatMul",
                                                    "Add",
                                                    "Mul",
                                                    "Div",
                                                    "Pow",
                                                    "Where",
                                                    "Relu",
                                                    "PRelu",
                                                    "Clip",
                                                    "Cast",
                                                    "Identity",
                                                    "BatchNormalization",
                                                    "Softmax",
                                                    "LRN",
                                                    "MaxPool",
                                                    "AveragePool",
                                                    "GlobalAveragePool",
                                                    "Resize",
                                                    "Pad",
                                                    "Concat",
                                                    "Split",
                                                    "Slice",
                                                    "Reshape",
                                                    "Flatten",
                                                    "Squeeze",
                                                    "Unsqueeze",
                                                    "Transpose",
                                                    "Expand",
                                                    "Tile",
                                                    "Gather",
                                                    "GatherND",
                                                    "ScatterND",
                                                    "ReduceMean",
                                                    "ArgMax",
                                                    "TopK",
                                                    "DepthToSpace",
                                                    "SpaceToDepth",
                                                    "Einsum",
                                                    "Shape",
                                                    "Constant",
                                                    "Range",
                                                    "LSTM",
                                                    "QuantizeLinear",
                                                    "LayerNormalization",
                                                    "InstanceNormalization"};

constexpr std::array<int64_t, 22> kNumbers = {
    0,        1,   -1,  2,    -2,   3,     4,
    5,        6,   7,   8,    12,   16,    32,
    64,       255, 256, 1024, 1000, 65536, int64_t{1} << 40,
    INT64_MIN};

class Mutator {
 public:
  Mutator(onnx::ModelProto& model, std::mt19937& random)
      : graph_(*model.mutable_graph()), model_(model), random_(random) {}

  void change() {
    switch (random_() % 12) {
      case 0:
        return change_operator();
      case 1:
      case 2:
        return rewire();
      case 3:
      case 4:
        return change_attribute();
      case 5:
      case 6:
        return resize_weight();
      case 7:
        return resize_input();
      case 8:
        return copy_node();
      case 9:
        return drop();
      case 10:
        return change_numbers();
      default:
        return change_model();
    }
  }

 private:
  size_t below(int count) { return random_() % static_cast<size_t>(count); }
  int pick(int count) { return static_cast<int>(below(count)); }
  int64_t number() {
    return random_() % 3 != 0 ? static_cast<int64_t>(random_() % 10)
                              : kNumbers[random_() % kNumbers.size()];
  }
  onnx::NodeProto* any_node() {
    return graph_.node_size() == 0 ? nullptr : graph_.mutable_node(pick(graph_.node_size()));
  }
  onnx::TensorProto* any_weight() {
    if (graph_.initializer_size() == 0) return nullptr;
    return graph_.mutable_initializer(pick(graph_.initializer_size()));
  }

  std::string any_name() {
    std::vector<std::string> names = {""};
    for (const auto& input : graph_.input()) names.push_back(input.name());
    for (const auto& weight : graph_.initializer()) names.push_back(weight.name());
    for (const auto& node : graph_.node()) {
      names.insert(names.end(), node.output().begin(), node.output().end());
    }
    return names[random_() % names.size()];
  }

  void change_operator() {
    if (auto* node = any_node()) node->set_op_type(kOperators[random_() % kOperators.size()]);
  }

  void rewire() {
    auto* node = any_node();
    if (node == nullptr) return;
    const int at = pick(node->input_size() + 1);
    if (at == node->input_size()) {
      node->add_input(any_name());
    } else {
      node->set_input(at, any_name());
    }
  }

  void change_attribute() {
    auto* node = any_node();
    if (node == nullptr || node->attribute_size() == 0) return;
    auto& attribute = *node->mutable_attribute(pick(node->attribute_size()));
    switch (random_() % 4) {
      case 0:
        if (attribute.ints_size() > 0) return attribute.mutable_ints()->RemoveLast();
        return attribute.set_i(number());
      case 1:
        return attribute.add_ints(number());
      default:
        if (attribute.ints_size() == 0) return attribute.set_i(number());
        return attribute.set_ints(pick(attribute.ints_size()), number());
    }
  }

  /// Mostly with the data that the new dims need.
  void resize_weight() {
    auto* weight = any_weight();
    if (weight == nullptr) return;
    const int at = pick(weight->dims_size() + 1);
    if (at == weight->dims_size()) {
      weight->add_dims(number());
    } else {
      weight->set_dims(at, number());
    }
    int64_t count = 1;
    for (const int64_t dim : weight->dims()) {
      if (dim < 0 || dim > 4096 || count > 4096) return;
      count *= dim;
    }
    if (weight->raw_data().empty() || random_() % 8 == 0) return;
    const bool integers = weight->data_type() == onnx::TensorProto::INT64;
    weight->mutable_raw_data()->resize(static_cast<size_t>(count) * (integers ? 8 : 4), '\x01');
  }

  void resize_input() {
    if (graph_.input_size() == 0) return;
    auto& type = *graph_.mutable_input(pick(graph_.input_size()))->mutable_type();
    auto& shape = *type.mutable_tensor_type()->mutable_shape();
    const int at = pick(shape.dim_size() + 1);
    auto& dim = at == shape.dim_size() ? *shape.add_dim() : *shape.mutable_dim(at);
    if (random_() % 4 == 0) {
      dim.set_dim_param("n");
    } else {
      dim.set_dim_value(number());
    }
  }

  /// The same operator once more, reading what it made.
  void copy_node() {
    const auto* node = any_node();
    if (node == nullptr || node->output_size() == 0 || graph_.node_size() > 30) return;
    const onnx::NodeProto original = *node;
    onnx::NodeProto& copy = *graph_.add_node();
    copy = original;
    for (auto& output : *copy.mutable_output()) {
      output += "_" + std::to_string(graph_.node_size());
    }
    if (copy.input_size() > 0) copy.set_input(0, original.output(0));
    if (graph_.output_size() > 0 && random_() % 2 == 0) {
      graph_.mutable_output(0)->set_name(copy.output(0));
    }
  }

  void drop() {
    auto* node = any_node();
    if (node == nullptr) return;
    switch (random_() % 4) {
      case 0:
        if (node->input_size() > 0) node->mutable_input()->RemoveLast();
        return;
      case 1:
        if (node->attribute_size() > 0) node->mutable_attribute()->RemoveLast();
        return;
      case 2:
        graph_.mutable_node()->DeleteSubrange(pick(graph_.node_size()), 1);
        return;
      default:
        graph_.clear_value_info();
        return;
    }
  }

  /// Elements of a shape, indices, a scale.
  void change_numbers() {
    auto* weight = any_weight();
    if (weight == nullptr) return;
    std::string& raw = *weight->mutable_raw_data();
    if (raw.size() >= 8) {
      const int64_t value = number();
      const size_t at = random_() % (raw.size() / 8) * 8;
      for (size_t i = 0; i < 8; ++i) raw[at + i] = static_cast<char>(value >> (8 * i));
    } else if (weight->int64_data_size() > 0) {
      weight->set_int64_data(pick(weight->int64_data_size()), number());
    }
  }

  void change_model() {
    switch (random_() % 3) {
      case 0:
        if (model_.opset_import_size() > 0) {
          model_.mutable_opset_import(0)->set_version(7 + static_cast<int64_t>(below(15)));
        }
        return;
      case 1:
        if (auto* weight = any_weight()) weight->set_data_type(pick(17));
        return;
      default:
        if (graph_.output_size() > 0) graph_.mutable_output(0)->set_name(any_name());
        return;
    }
  }

  onnx::GraphProto& graph_;
  onnx::ModelProto& model_;
  std::mt19937& random_;
};

}  // namespace

std::string mutated(std::string_view bytes, std::mt19937& random) {
  onnx::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return {};
  for (size_t changes = 1 + random() % 3; changes > 0; --changes) Mutator(model, random).change();
  return model.SerializeAsString();
}

}  // namespace parsimony::fuzz
