#include "tests/properties/random_network.h"

#include <random>
#include <string>

#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

/// A feature map [1, c, h, w].
struct Feature {
  std::string name;
  int64_t c = 0;
  int64_t h = 0;
  int64_t w = 0;
};

class Builder {
 public:
  Builder() {
    model_.set_ir_version(8);
    model_.add_opset_import()->set_version(13);
    model_.mutable_graph()->set_name("random");
    declare(*model_.mutable_graph()->add_input(), "x", {1, 3, 8, 8});
    features_.push_back(conv({"x", 3, 8, 8}, 8, 3, 1));
  }

  void step(uint32_t choice) {
    choice_ = choice / 32;
    const Feature x = features_[features_.size() - 1 - pick(std::min<size_t>(3, features_.size()))];
    switch (choice % 20) {
      case 2:
        return push(grouped(x, divisor(x.c)));
      case 3:
        return push(conv(x, x.c * int64_t(1 + pick(2)), 3, x.c));
      case 4:
        return push(normalised(x));
      case 5:
      case 6:
        return push(unary(x));
      case 7:
      case 8:
        return push(binary(x, "Add"));
      case 9:
        return push(binary(x, "Mul"));
      case 10:
        return push(joined(x));
      case 11:
        return split(x);
      case 12:
        return push(sliced(x));
      case 13:
        return push(shuffled(x));
      case 14:
        return push(padded(x));
      case 15:
        return push(pooled(x));
      case 16:
        return push(gated(x));
      case 17:
        return push(transposed(x));
      case 18:
        return push(to_space(x));
      case 19:
        return push(gathered(x));
      default:
        return push(
            conv(x, std::vector<int64_t>{4, 6, 8, 12}[pick(4)], 1 + 2 * int64_t(pick(2)), 1));
    }
  }

  onnx::ModelProto finish() {
    const Feature last = features_.back();
    const std::string flat = node("Flatten", {last.name});
    add_weight(model_, "W", std::to_string(last.c * last.h * last.w) + "x5");
    node("MatMul", {flat, "W"}, "y");
    declare(*model_.mutable_graph()->add_output(), "y", {1, 5});
    const Feature& other = features_[features_.size() / 2];
    const std::string mean = node("GlobalAveragePool", {conv(other, 3, 1, 1).name}, "z");
    declare(*model_.mutable_graph()->add_output(), "z", {1, 3, 1, 1});
    return model_;
  }

 private:
  size_t pick(size_t n) {
    const size_t result = choice_ % n;
    choice_ = choice_ / static_cast<uint32_t>(n) * 7 + 3;
    return result;
  }

  int64_t divisor(int64_t of) {
    std::vector<int64_t> all;
    for (int64_t d = 1; d <= of && d <= 4; ++d) {
      if (of % d == 0) all.push_back(d);
    }
    return all[pick(all.size())];
  }

  static void declare(onnx::ValueInfoProto& info, const std::string& name,
                      const std::vector<int64_t>& dims) {
    info.set_name(name);
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    for (const int64_t dim : dims) type.mutable_shape()->add_dim()->set_dim_value(dim);
  }

  std::string fresh(const char* prefix) { return prefix + std::to_string(++names_); }

  onnx::NodeProto& add_node(const std::string& op, const std::vector<std::string>& inputs) {
    onnx::NodeProto& result = *model_.mutable_graph()->add_node();
    result.set_op_type(op);
    for (const std::string& input : inputs) result.add_input(input);
    return result;
  }

  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   std::string output = "") {
    if (output.empty()) output = fresh("v");
    add_node(op, inputs).add_output(output);
    return output;
  }

  void set(const std::string& name, int64_t value) {
    onnx::AttributeProto& attribute =
        *model_.mutable_graph()->mutable_node()->rbegin()->add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }

  void set(const std::string& name, const std::vector<int64_t>& values) {
    onnx::AttributeProto& attribute =
        *model_.mutable_graph()->mutable_node()->rbegin()->add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const int64_t value : values) attribute.add_ints(value);
  }

  std::string integers(const std::vector<int64_t>& values) {
    onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
    tensor.set_name(fresh("i"));
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(static_cast<int64_t>(values.size()));
    for (const int64_t value : values) tensor.add_int64_data(value);
    return tensor.name();
  }

  std::string weight(const std::string& dims, const std::string& kind = "") {
    const std::string name = fresh("w");
    add_weight(model_, name, dims, "float", kind);
    return name;
  }

  void push(const Feature& feature) {
    if (feature.c > 0 && feature.c <= 64 && feature.c * feature.h * feature.w <= 4096)
      features_.push_back(feature);
  }

  Feature conv(const Feature& x, int64_t out, int64_t k, int64_t group) {
    const std::string dims = std::to_string(out) + "x" + std::to_string(x.c / group) + "x" +
                             std::to_string(k) + "x" + std::to_string(k);
    const std::string y = node("Conv", {x.name, weight(dims), weight(std::to_string(out))});
    set("pads", std::vector<int64_t>(4, k / 2));
    set("group", group);
    return {y, out, x.h, x.w};
  }

  Feature grouped(const Feature& x, int64_t group) { return conv(x, 4 * group, 3, group); }

  Feature normalised(const Feature& x) {
    const std::string c = std::to_string(x.c);
    return {node("BatchNormalization",
                 {x.name, weight(c), weight(c), weight(c), weight(c, "positive")}),
            x.c, x.h, x.w};
  }

  Feature unary(const Feature& x) {
    static const std::vector<std::string> ops = {"Relu", "Sigmoid", "Tanh", "Softplus",
                                                 "LeakyRelu"};
    return {node(ops[pick(ops.size())], {x.name}), x.c, x.h, x.w};
  }

  /// With an earlier map of the same shape, or else a convolution that makes one.
  Feature binary(const Feature& x, const std::string& op) {
    Feature other;
    for (const Feature& feature : features_) {
      if (feature.name != x.name && feature.c == x.c && feature.h == x.h && feature.w == x.w)
        other = feature;
    }
    if (other.c == 0 || pick(3) == 0) other = conv(x, x.c, 1, 1);
    return {node(op, {x.name, other.name}), x.c, x.h, x.w};
  }

  Feature joined(const Feature& x) {
    const Feature& other = features_[pick(features_.size())];
    const bool fits = other.h == x.h && other.w == x.w;
    const std::string y = node("Concat", {x.name, fits ? other.name : x.name});
    set("axis", 1);
    return {y, x.c + (fits ? other.c : x.c), x.h, x.w};
  }

  void split(const Feature& x) {
    if (x.c < 4) return;
    const int64_t first = pick(2) == 0 ? x.c / 2 : x.c / 4;
    const std::string sizes = integers({first, x.c - first});
    onnx::NodeProto& made = add_node("Split", {x.name, sizes});
    const Feature a{fresh("v"), first, x.h, x.w};
    const Feature b{fresh("v"), x.c - first, x.h, x.w};
    made.add_output(a.name);
    made.add_output(b.name);
    set("axis", 1);
    push(a);
    push(b);
  }

  Feature sliced(const Feature& x) {
    const auto begin = static_cast<int64_t>(pick(static_cast<size_t>(x.c)));
    const int64_t end = begin + 1 + static_cast<int64_t>(pick(static_cast<size_t>(x.c - begin)));
    const std::string y =
        node("Slice", {x.name, integers({begin}), integers({end}), integers({1})});
    return {y, end - begin, x.h, x.w};
  }

  Feature shuffled(const Feature& x) {
    const int64_t g = divisor(x.c);
    const std::string a = node("Reshape", {x.name, integers({1, g, x.c / g, x.h, x.w})});
    const std::string b = node("Transpose", {a});
    set("perm", {0, 2, 1, 3, 4});
    return {node("Reshape", {b, integers({1, pick(2) == 0 ? -1 : x.c, x.h, x.w})}), x.c, x.h, x.w};
  }

  Feature padded(const Feature& x) {
    const auto before = static_cast<int64_t>(pick(3));
    const auto after = static_cast<int64_t>(pick(3));
    return {node("Pad", {x.name, integers({0, before, 0, 0, 0, after, 0, 0})}),
            x.c + before + after, x.h, x.w};
  }

  Feature pooled(const Feature& x) {
    if (x.h < 2) return {};
    const std::string y = node(pick(2) == 0 ? "MaxPool" : "AveragePool", {x.name});
    set("kernel_shape", {2, 2});
    set("strides", {2, 2});
    return {y, x.c, x.h / 2, x.w / 2};
  }

  Feature gated(const Feature& x) {
    const Feature pool{node("GlobalAveragePool", {x.name}), x.c, 1, 1};
    const Feature narrow = conv(pool, 3, 1, 1);
    const Feature wide = conv({node("Relu", {narrow.name}), 3, 1, 1}, x.c, 1, 1);
    return {node("Mul", {x.name, node("Sigmoid", {wide.name})}), x.c, x.h, x.w};
  }

  Feature transposed(const Feature& x) {
    const int64_t group = divisor(x.c);
    const std::string dims = std::to_string(x.c) + "x3x2x2";
    const std::string y = node("ConvTranspose", {x.name, weight(dims)});
    set("strides", {2, 2});
    set("group", group);
    return {y, 3 * group, 2 * x.h, 2 * x.w};
  }

  Feature to_space(const Feature& x) {
    if (x.c % 4 != 0) return {};
    const std::string y = node("DepthToSpace", {x.name});
    set("blocksize", 2);
    return {y, x.c / 4, 2 * x.h, 2 * x.w};
  }

  Feature gathered(const Feature& x) {
    std::vector<int64_t> indices;
    const auto step = static_cast<int64_t>(1 + pick(3));
    for (int64_t i = 0; i < x.c; ++i) indices.push_back((i * step + 1) % x.c);
    const std::string y = node("Gather", {x.name, integers(indices)});
    set("axis", 1);
    return {y, x.c, x.h, x.w};
  }

  onnx::ModelProto model_;
  std::vector<Feature> features_;
  uint32_t choice_ = 0;
  int names_ = 0;
};

}  // namespace

onnx::ModelProto network_of(const std::vector<uint32_t>& steps) {
  Builder builder;
  for (const uint32_t step : steps) builder.step(step);
  return builder.finish();
}

onnx::ModelProto random_network(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint32_t> steps(4 + random() % 11);
  for (uint32_t& step : steps) step = static_cast<uint32_t>(random());
  return network_of(steps);
}

}  // namespace parsimony::test
