#include <algorithm>
#include <cmath>
#include <cstring>

#include "parsimony/graph/attributes.h"
#include "parsimony/onnx_io/export/lowering_impl.h"

namespace parsimony::onnx_io {
namespace {

std::vector<float> floats(const ExportBuilder& built, ValueId value) {
  const std::vector<std::byte> bytes = dense_bytes(built.weight_of(value));
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

std::vector<std::byte> bytes_of(const std::vector<float>& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(float));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

class Folding {
 public:
  explicit Folding(ExportBuilder& built) : built_(built), graph_(built.graph()) {
    reads_.assign(graph_.values.size(), 0);
    for (const Node& node : graph_.nodes) {
      for (const ValueId input : node.inputs) {
        if (input != kNone) ++reads_[input];
      }
    }
    for (const ValueId output : graph_.outputs) ++reads_[output];
  }

  void run() {
    for (Node& norm : graph_.nodes) {
      if (norm.op != "BatchNormalization") continue;
      Node* conv = before(norm.inputs[0]);
      if (conv == nullptr || !foldable(*conv, norm)) continue;
      fold(*conv, norm);
    }
    std::erase_if(graph_.nodes.raw(), [](const Node& node) { return node.op.empty(); });
    drop_unread_weights();
  }

 private:
  Node* before(ValueId value) {
    const auto found = std::ranges::find_if(
        graph_.nodes, [&](const Node& n) { return n.op == "Conv" && n.outputs[0] == value; });
    return found == graph_.nodes.end() ? nullptr : &*found;
  }

  bool constant(ValueId value) const {
    return built_.is_weight(value) && built_.dtype(value) == DType::kFloat32;
  }

  bool foldable(const Node& conv, const Node& norm) const {
    if (reads_[conv.outputs[0]] != 1) return false;
    if (reads_[conv.inputs[1]] != 1) return false;
    const auto fits = [&](ValueId v) { return constant(v); };
    return std::all_of(conv.inputs.begin() + 1, conv.inputs.end(), fits) &&
           std::all_of(norm.inputs.begin() + 1, norm.inputs.end(), fits);
  }

  void fold(Node& conv, Node& norm) {
    const auto gamma = floats(built_, norm.inputs[1]);
    const auto beta = floats(built_, norm.inputs[2]);
    const auto mean = floats(built_, norm.inputs[3]);
    const auto variance = floats(built_, norm.inputs[4]);
    auto weight = floats(built_, conv.inputs[1]);
    const bool biased = conv.inputs.size() > 2;
    const auto old = biased ? floats(built_, conv.inputs[2]) : std::vector<float>(gamma.size());
    const size_t each = weight.size() / gamma.size();
    const double epsilon = attr(norm, "epsilon", 1e-5);
    std::vector<float> bias(gamma.size());
    for (size_t c = 0; c < gamma.size(); ++c) {
      const double scale = gamma[c] / std::sqrt(variance[c] + epsilon);
      for (size_t i = c * each; i < (c + 1) * each; ++i) {
        weight[i] = static_cast<float>(weight[i] * scale);
      }
      bias[c] = static_cast<float>((old[c] - mean[c]) * scale + beta[c]);
    }
    conv.inputs[1] = renamed(conv.inputs[1], weight);
    conv.inputs.resize(3);
    conv.inputs[2] = renamed(norm.inputs[2], bias);
    conv.outputs = norm.outputs;
    norm.op.clear();
  }

  /// Replaces a tensor by one of the same shape and name.
  ValueId renamed(ValueId old, const std::vector<float>& numbers) {
    const std::string name = graph_.value(old).name;
    built_.begin(name);
    const Shape dims = built_.weight_of(old).dims;
    const ValueId fresh = built_.tensor(name + ".folded", DType::kFloat32, dims, bytes_of(numbers));
    built_.rename(fresh, name);
    return fresh;
  }

  void drop_unread_weights() {
    IdVector<ValueId, bool> read(graph_.values.size());
    for (const Node& node : graph_.nodes) {
      for (const ValueId input : node.inputs) {
        if (input != kNone) read[input] = true;
      }
    }
    for (const ValueId v : graph_.values.ids()) {
      if (!read[v]) graph_.values[v].weight = kNone;
    }
  }

  ExportBuilder& built_;
  Graph& graph_;
  IdVector<ValueId, int> reads_;
};

}  // namespace

void fold_batchnorm(ExportBuilder& built) { Folding(built).run(); }

}  // namespace parsimony::onnx_io
