#include "parsimony/api/network_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "parsimony/api/output_metrics.h"

namespace parsimony {
namespace {

/// Correlation over the elements of one output, each centred on its own mean.
class Correlation {
 public:
  void look(const TensorBytes& found, const TensorBytes& expected) {
    add(numbers_of(found), found_, found.dims);
    add(numbers_of(expected), expected_, expected.dims);
  }

  void add(const TensorBytes& found, const TensorBytes& expected) {
    const HostTensor a = numbers_of(found);
    const HostTensor b = numbers_of(expected);
    for (size_t i = 0; i < a.floats.size(); ++i) {
      const double x = a.floats[i] - mean(found_, i);
      const double y = b.floats[i] - mean(expected_, i);
      xx_ += x * x;
      yy_ += y * y;
      xy_ += x * y;
    }
  }

  /// Returns r², 0 for a negative correlation; NaN if an element is not finite.
  double r_squared() const {
    if (!std::isfinite(xx_) || !std::isfinite(yy_)) return std::nan("");
    return xy_ > 0 && xx_ > 0 && yy_ > 0 ? xy_ * xy_ / (xx_ * yy_) : 0;
  }

 private:
  struct Means {
    std::vector<double> sums;
    int64_t rows = 0;
  };

  static void add(const HostTensor& numbers, Means& means, const Shape& dims) {
    const int64_t rows = dims.empty() || dims[0] == 0 ? 1 : dims[0];
    const size_t width = numbers.floats.size() / static_cast<size_t>(rows);
    means.sums.resize(std::max(means.sums.size(), width), 0.0);
    for (size_t i = 0; i < numbers.floats.size(); ++i) means.sums[i % width] += numbers.floats[i];
    means.rows += rows;
  }

  static double mean(const Means& means, size_t i) {
    return means.sums[i % means.sums.size()] / static_cast<double>(means.rows);
  }

  Means found_, expected_;
  double xx_ = 0, yy_ = 0, xy_ = 0;
};

}  // namespace

HostTensor numbers_of(const TensorBytes& tensor) {
  return to_host(
      {tensor.name, tensor.dtype, tensor.dims, tensor.bytes.data(), size_of(tensor.dtype)});
}

double unexplained(const Outputs& found, const Outputs& expected) {
  double r_squared = 0;
  int outputs = 0;
  for (size_t o = 0; !expected.empty() && o < expected[0].size(); ++o) {
    if (!is_floating(expected[0][o].dtype)) continue;
    Correlation correlation;
    const auto each_batch = [&](auto&& act) {
      for (size_t b = 0; b < expected.size(); ++b) {
        if (found[b].size() > o && found[b][o].dims == expected[b][o].dims) {
          act(found[b][o], expected[b][o]);
        }
      }
    };
    each_batch([&](const TensorBytes& a, const TensorBytes& b) { correlation.look(a, b); });
    each_batch([&](const TensorBytes& a, const TensorBytes& b) { correlation.add(a, b); });
    r_squared += correlation.r_squared();
    ++outputs;
  }
  if (std::isnan(r_squared)) return std::numeric_limits<double>::infinity();
  return outputs > 0 ? std::sqrt(std::max(0.0, 1 - r_squared / outputs)) : 0;
}

void OutputError::add(const TensorBytes& found, const TensorBytes& expected) {
  if (!is_floating(expected.dtype) || found.dims != expected.dims) return;
  const std::vector<double> a = numbers_of(found).floats;
  const std::vector<double> b = numbers_of(expected).floats;
  for (size_t i = 0; i < b.size(); ++i) {
    apart += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
}

void OutputError::add(const OutputError& other) {
  apart += other.apart;
  size += other.size;
}

double OutputError::relative() const { return apart == 0 ? 0 : std::sqrt(apart / size); }

double relative_error(std::span<const TensorBytes> a, std::span<const TensorBytes> b) {
  OutputError error;
  for (size_t o = 0; o < std::min(a.size(), b.size()); ++o) error.add(a[o], b[o]);
  return std::isnan(error.apart) ? std::numeric_limits<double>::infinity() : error.relative();
}

NetworkComparison::NetworkComparison(const Graph& original, Engine& engine, ErrorData data)
    : engine_(&engine), data_(std::move(data)), expected_(outputs_of(original)) {
  if (!data_.labels.empty()) accuracy_ = accuracy_of(expected_);
}

double NetworkComparison::operator()(const Graph& small) const {
  const auto outputs = outputs_of(small);
  if (!data_.labels.empty()) return accuracy_ - accuracy_of(outputs);
  std::vector<TensorBytes> found;
  std::vector<TensorBytes> expected;
  for (size_t b = 0; b < outputs.size(); ++b) {
    found.insert(found.end(), outputs[b].begin(), outputs[b].end());
    expected.insert(expected.end(), expected_[b].begin(), expected_[b].end());
  }
  return relative_error(found, expected);
}

double NetworkComparison::unexplained(const Graph& small) const {
  return parsimony::unexplained(outputs_of(small), expected_);
}

int NetworkComparison::samples() const {
  return static_cast<int>(data_.labels.empty() ? data_.batches.size() : data_.labels.size());
}

double NetworkComparison::r_squared(const Graph& small) const {
  const auto compares = [](const TensorBytes& output) { return is_floating(output.dtype); };
  const bool any = !expected_.empty() && std::ranges::any_of(expected_.front(), compares);
  if (!any) return 0;
  const double lost = unexplained(small);
  return std::max(0.0, 1 - lost * lost);
}

Outputs NetworkComparison::outputs_of(const Graph& graph) const {
  const std::unique_ptr<Network> network = engine_->open(graph);
  Outputs outputs;
  for (const auto& batch : data_.batches) {
    network->bind(batch);
    network->compute();
    TensorList& found = outputs.emplace_back(network->outputs());
    for (size_t o = 0; o < std::min(found.size(), graph.outputs.size()); ++o) {
      found[o].name = graph.value(graph.outputs[o]).name;
    }
  }
  return outputs;
}

double NetworkComparison::accuracy_of(const Outputs& outputs) const {
  return find_output_metric("accuracy")->value(predictions_of(outputs, outputs, {}, data_.labels));
}

}  // namespace parsimony
