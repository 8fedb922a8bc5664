#include "parsimony/api/network_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace parsimony {
namespace {

HostTensor numbers_of(const TensorBytes& tensor) {
  return to_host(
      {tensor.name, tensor.dtype, tensor.dims, tensor.bytes.data(), size_of(tensor.dtype)});
}

}  // namespace

double relative_error(std::span<const TensorBytes> a, std::span<const TensorBytes> b) {
  double difference = 0;
  double norm = 0;
  for (size_t o = 0; o < std::min(a.size(), b.size()); ++o) {
    if (!is_floating(b[o].dtype) || a[o].dims != b[o].dims) continue;
    const HostTensor found = numbers_of(a[o]);
    const HostTensor wanted = numbers_of(b[o]);
    for (size_t i = 0; i < wanted.floats.size(); ++i) {
      const double apart = found.floats[i] - wanted.floats[i];
      difference += apart * apart;
      norm += wanted.floats[i] * wanted.floats[i];
    }
  }
  if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
  return difference > 0 ? std::sqrt(difference / norm) : 0;
}

std::vector<int64_t> best_classes(const TensorBytes& scores) {
  const HostTensor numbers = numbers_of(scores);
  const int64_t rows = scores.dims.empty() ? 0 : scores.dims[0];
  std::vector<int64_t> best;
  if (rows == 0) return best;
  const auto classes = static_cast<std::ptrdiff_t>(numbers.floats.size()) / rows;
  for (std::ptrdiff_t row = 0; row < rows; ++row) {
    const auto begin = numbers.floats.begin() + row * classes;
    best.push_back(std::max_element(begin, begin + classes) - begin);
  }
  return best;
}

NetworkComparison::NetworkComparison(const Graph& original, Open open, ErrorData data)
    : open_(std::move(open)), data_(std::move(data)), wanted_(outputs_of(original)) {
  if (!data_.labels.empty()) accuracy_ = accuracy_of(wanted_);
}

double NetworkComparison::operator()(const Graph& small) const {
  const auto outputs = outputs_of(small);
  if (!data_.labels.empty()) return accuracy_ - accuracy_of(outputs);
  std::vector<TensorBytes> found;
  std::vector<TensorBytes> wanted;
  for (size_t b = 0; b < outputs.size(); ++b) {
    found.insert(found.end(), outputs[b].begin(), outputs[b].end());
    wanted.insert(wanted.end(), wanted_[b].begin(), wanted_[b].end());
  }
  return relative_error(found, wanted);
}

std::vector<std::vector<TensorBytes>> NetworkComparison::outputs_of(const Graph& graph) const {
  const std::unique_ptr<Executable> network = open_(graph);
  std::vector<std::vector<TensorBytes>> outputs;
  for (const auto& batch : data_.batches) {
    const std::unique_ptr<BoundRun> run = network->bind(batch);
    run->run();
    outputs.push_back(run->outputs());
  }
  return outputs;
}

double NetworkComparison::accuracy_of(const std::vector<std::vector<TensorBytes>>& outputs) const {
  size_t right = 0;
  size_t at = 0;
  for (const auto& batch : outputs) {
    if (batch.empty()) continue;
    for (const int64_t best : best_classes(batch.front())) {
      if (at < data_.labels.size() && data_.labels[at] == best) ++right;
      ++at;
    }
  }
  return static_cast<double>(right) / static_cast<double>(data_.labels.size());
}

}  // namespace parsimony
