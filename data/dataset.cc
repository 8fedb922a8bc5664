#include "parsimony/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "parsimony/base/hash.h"
#include "parsimony/data/formats_impl.h"

namespace parsimony {
namespace {

void check(const DatasetOptions& options) {
  const auto bad = [](std::string_view what, auto value, std::string_view requested) {
    return ConfigError("data: ", what, " is ", std::to_string(value), ", expected ", requested);
  };
  const auto positive = [&](std::string_view what, std::optional<int64_t> value) {
    if (value && *value < 1) throw bad(what, *value, "at least 1");
  };
  positive("number of training samples", options.train_samples);
  positive("number of test samples", options.test_samples);
  positive("size of images", options.size);
  if (!(options.test_share > 0 && options.test_share < 1)) {
    throw bad("share of test samples", options.test_share, "more than 0 and less than 1");
  }
}

void add(Sha256& sum, const Samples& samples) {
  const std::string head = to_string(samples.dims) + std::string(name_of(samples.dtype));
  sum.add(std::as_bytes(std::span(head)));
  sum.add(samples.values);
  sum.add(std::as_bytes(std::span(samples.labels)));
}

/// Computes mean and deviation of the scaled values of each channel.
template <typename Value>
void measure(Dataset& data) {
  const Samples& samples = data.train;
  const int64_t channels = samples.dims.front();
  const int64_t plane = element_count(samples.dims) / channels;
  std::vector<double> sums(channels);
  std::vector<double> squares(channels);
  const std::byte* at = samples.values.data();
  for (int64_t i = 0; i < samples.count(); ++i) {
    for (size_t c = 0; c < sums.size(); ++c) {
      for (int64_t p = 0; p < plane; ++p, at += sizeof(Value)) {
        Value value;
        std::memcpy(&value, at, sizeof(Value));
        const double scaled = static_cast<double>(value) * data.scale;
        sums[c] += scaled;
        squares[c] += scaled * scaled;
      }
    }
  }
  const auto count = static_cast<double>(samples.count() * plane);
  for (size_t c = 0; c < sums.size(); ++c) {
    const double mean = sums[c] / count;
    const double deviation = std::sqrt(std::max(0.0, squares[c] / count - mean * mean));
    data.mean.push_back(mean);
    data.deviation.push_back(deviation > 0 ? deviation : 1);  // a channel that is constant
  }
}

/// Fills in scale, mean and deviation.
void normalise(Dataset& data, std::string_view spec, const DatasetOptions& options) {
  const bool bytes = data.train.dtype == DType::kUInt8 && !data.tokens;
  data.scale = bytes ? 1.0 / 255 : 1;
  if (!options.normalise && options.mean.empty()) return;
  if (data.tokens) {
    throw ConfigError("data ", in_quotes(spec), ": tokens are indices, which have no mean: omit ",
                      in_quotes("normalise"), ", mean and std");
  }
  if (options.mean.empty()) return bytes ? measure<uint8_t>(data) : measure<float>(data);
  const int64_t channels = data.train.dims.empty() ? 1 : data.train.dims.front();
  if (std::ssize(options.mean) != channels) {
    throw ConfigError("mean and std have ", options.mean.size(), " numbers, the samples of ",
                      in_quotes(spec), " have ", channels, " channels");
  }
  data.mean = options.mean;
  data.deviation = options.deviation;
}

void check_parts(const Dataset& data, std::string_view spec) {
  const auto kind = [](const Samples& samples) {
    return to_string(samples.dims) + ' ' + std::string(name_of(samples.dtype));
  };
  const std::string train = kind(data.train);
  const std::string test = kind(data.test);
  if (train == test) return;
  throw ModelError("data ", in_quotes(spec), ": samples to test with are ", test,
                   ", those to train with ", train);
}

}  // namespace

ChannelScale::ChannelScale(int64_t channels, double scale, const std::vector<double>& mean,
                           const std::vector<double>& deviation) {
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    const double divisor = deviation.empty() ? 1 : deviation[c];
    factors.push_back(static_cast<float>(scale / divisor));
    offsets.push_back(static_cast<float>(-(mean.empty() ? 0 : mean[c]) / divisor));
  }
}

int64_t Samples::count() const {
  return static_cast<int64_t>(labels.size()) / std::max<int64_t>(1, element_count(label_dims));
}

int64_t Samples::stride() const { return element_count(dims) * size_of(dtype); }

std::vector<std::string> numbers_from(int64_t first, int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(first + i));
  return names;
}

void keep_first(Samples& samples, std::optional<int64_t> limit) {
  if (!limit || *limit >= samples.count()) return;
  samples.labels.resize(*limit * element_count(samples.label_dims));
  samples.values.resize(*limit * samples.stride());
}

int64_t test_part_of(int64_t count, const DatasetOptions& options, const std::string& spec) {
  const int64_t test = std::llround(static_cast<double>(count) * options.test_share);
  if (test >= 1 && test < count) return test;
  throw ConfigError("data ", in_quotes(spec), ": a split of ", count, " samples leaves none to ",
                    test < 1 ? "test" : "train", " with; pass a test set or another share");
}

Dataset read_dataset(std::string_view spec, const DatasetOptions& options) {
  const DataSpec what = parse_data_spec(spec, /*labelled=*/true);
  check(options);
  Dataset data = what.format->labelled != nullptr
                     ? what.format->labelled(what.place, options)
                     : read_labelled_arrays(std::string(spec), options);
  check_parts(data, spec);
  keep_first(data.train, options.train_samples);
  keep_first(data.test, options.test_samples);

  normalise(data, spec, options);
  Sha256 sum;
  add(sum, data.train);
  add(sum, data.test);
  data.fingerprint = sum.hex();
  return data;
}

namespace {

/// The training set, followed by the test set.
class DatasetInput final : public InputSource {
 public:
  explicit DatasetInput(std::shared_ptr<const Dataset> data)
      : data_(std::move(data)),
        scale_(data_->train.dims.front(), data_->scale, data_->mean, data_->deviation) {}

  int64_t samples() const override { return data_->train.count(); }
  int64_t test_samples() const override { return data_->test.count(); }

  TensorBytes rows(int64_t first, int64_t count) const override {
    const auto& [part, begin] = part_of(first);
    TensorBytes result;
    result.dims = part->dims;
    result.dims.insert(result.dims.begin(), count);
    const std::byte* from = part->values.data() + begin * part->stride();
    if (data_->tokens) {
      result.dtype = part->dtype;
      result.bytes.assign(from, from + count * part->stride());
      return result;
    }
    result.dtype = DType::kFloat32;
    result.bytes.resize(element_count(result.dims) * sizeof(float));
    auto* const to = reinterpret_cast<float*>(result.bytes.data());
    part->dtype == DType::kUInt8 ? scale<uint8_t>(from, count, to) : scale<float>(from, count, to);
    return result;
  }

  std::optional<Shape> label_dims() const override { return data_->train.label_dims; }

  std::vector<int64_t> labels(int64_t first, int64_t count) const override {
    const auto& [part, begin] = part_of(first);
    const int64_t each = element_count(part->label_dims);
    const auto from = part->labels.begin() + begin * each;
    return {from, from + count * each};
  }

 private:
  std::pair<const Samples*, int64_t> part_of(int64_t first) const {
    return first < samples() ? std::pair(&data_->train, first)
                             : std::pair(&data_->test, first - samples());
  }

  template <typename Stored>
  void scale(const std::byte* from, int64_t count, float* to) const {
    const int64_t plane = element_count(data_->train.dims) / data_->train.dims.front();
    for (int64_t i = 0; i < count; ++i) {
      for (size_t c = 0; c < scale_.factors.size(); ++c) {
        for (int64_t p = 0; p < plane; ++p, from += sizeof(Stored)) {
          Stored value;
          std::memcpy(&value, from, sizeof(Stored));
          *to++ = static_cast<float>(value) * scale_.factors[c] + scale_.offsets[c];
        }
      }
    }
  }

  std::shared_ptr<const Dataset> data_;
  ChannelScale scale_;
};

}  // namespace

std::unique_ptr<InputSource> open_dataset(std::shared_ptr<const Dataset> data) {
  return std::make_unique<DatasetInput>(std::move(data));
}

}  // namespace parsimony
