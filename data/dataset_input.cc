// A data set with labels as what one input of a network takes.
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "parsimony/data/dataset.h"
#include "parsimony/data/formats_impl.h"

namespace parsimony {
namespace {

/// The training part, and behind it the one to test with.
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
