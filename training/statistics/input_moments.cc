#include "parsimony/training/statistics/input_moments.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "parsimony/torch_io/executor/linear_rows.h"

namespace parsimony::training {
namespace {

constexpr int64_t kMostElements = 8 << 20;  // of windows in memory at a time: 64 MB

}  // namespace

InputMomentSums::InputMomentSums(const Graph& graph, const std::set<std::string>& wanted)
    : graph_(graph) {
  for (const MatrixInput& input : matrix_inputs(graph, wanted)) {
    layers_[input.value].push_back(input);
    sums_[input.weight->name];
  }
}

void InputMomentSums::see(ValueId value, const at::Tensor& x) {
  const auto found = layers_.find(value);
  if (found == layers_.end()) return;
  for (const MatrixInput& layer : found->second) add(layer, x);
}

at::Tensor InputMomentSums::operand(const MatrixInput& layer, const at::Tensor& x) const {
  const Node& node = graph_.node(layer.node);
  switch (layer.kind) {
    case LinearKind::kConvolution:
      return torch_io::conv_operand(node, x, layer.weight->dims);
    case LinearKind::kTransposedConvolution:
      return torch_io::conv_transpose_operand(node, x);
    case LinearKind::kMatrixProduct:
      return torch_io::matrix_operand(node, x, layer.operand);
    default:
      break;
  }
  return x.reshape({1, -1, x.size(-1)});
}

void InputMomentSums::add(const MatrixInput& layer, const at::Tensor& x) {
  Sums& sums = sums_.at(layer.weight->name);
  int64_t step = x.dim() == 0 ? 1 : x.size(0);
  if (layer.kind == LinearKind::kConvolution) {
    int64_t kernel = 1;
    for (size_t d = 2; d < layer.weight->dims.size(); ++d) kernel *= layer.weight->dims[d];
    const int64_t each = std::max<int64_t>(1, x.numel() / std::max<int64_t>(1, step) * kernel);
    step = std::clamp<int64_t>(kMostElements / each, 1, std::max<int64_t>(1, step));
  }
  for (int64_t first = 0; first == 0 || first < x.size(0); first += step) {
    const at::Tensor part =
        step == x.size(0) ? x : x.narrow(0, first, std::min(step, x.size(0) - first));
    const at::Tensor rows = operand(layer, part).to(at::kDouble);
    const at::Tensor product = at::bmm(rows.transpose(1, 2), rows);
    sums.rows += rows.size(1);
    sums.second = sums.second.defined() ? sums.second.add_(product) : product;
  }
}

void InputMomentSums::finish(Statistics& statistics) const {
  for (const auto& [name, sums] : sums_) {
    if (!sums.second.defined()) continue;
    const int64_t groups = sums.second.size(0);
    const int64_t in = sums.second.size(1);
    InputMoments& moments = statistics.inputs[name];
    moments.rows = sums.rows;
    // Symmetric blocks one after the other are, read by columns, blocks side by side.
    const at::Tensor plain = sums.second.cpu().contiguous();
    moments.second = Eigen::Map<const Eigen::MatrixXd>(plain.data_ptr<double>(), in, groups * in);
  }
}

int64_t InputMomentSums::bytes() const {
  int64_t bytes = 0;
  for (const auto& [name, sums] : sums_) {
    if (sums.second.defined()) bytes += static_cast<int64_t>(sums.second.nbytes());
  }
  return bytes;
}

}  // namespace parsimony::training
