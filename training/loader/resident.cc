#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "parsimony/training/loader/resident_impl.h"

namespace parsimony::training {
namespace {

at::Tensor uploaded(const void* data, Shape dims, int64_t count, c10::ScalarType type,
                    c10::Device device) {
  dims.insert(dims.begin(), count);
  return at::from_blob(const_cast<void*>(data), dims, type).to(device, type, false, /*copy=*/true);
}

at::Tensor numbers(std::span<const int64_t> values, c10::Device device) {
  return uploaded(values.data(), {}, std::ssize(values), at::kLong, device);
}

/// Whether `positions` are in [from, from + count), per row.
at::Tensor within(const at::Tensor& positions, const at::Tensor& from, int64_t count) {
  return positions.ge(from).logical_and(positions.lt(from + count));
}

/// Combines conditions on rows [n, h] and columns [n, w] to [n, 1, h, w].
at::Tensor both(const at::Tensor& rows, const at::Tensor& columns) {
  return rows.unsqueeze(2).logical_and(columns.unsqueeze(1)).unsqueeze(1);
}

}  // namespace

ResidentSamples::ResidentSamples(const Samples& samples, const Gatherer& gatherer,
                                 const LoaderOptions& options)
    : gatherer_(gatherer),
      options_(options),
      scaling_(gatherer, samples.dims.size(), options),
      values_(uploaded(samples.values.data(), samples.dims, samples.count(),
                       samples.dtype == DType::kUInt8 ? at::kByte : at::kFloat, options.device)),
      labels_(uploaded(samples.labels.data(), samples.label_dims, samples.count(), at::kLong,
                       options.device)) {
  fill_ = at::tensor(gatherer.fill()).reshape({-1, 1, 1}).to(options.device, values_.scalar_type());
}

ResidentSamples::Chunk ResidentSamples::chunk(int64_t epoch,
                                              std::span<const int64_t> indices) const {
  const at::NoGradGuard no_grad;
  const at::Tensor chosen = numbers(indices, options_.device);
  at::Tensor stored = values_.index_select(0, chosen);
  if (options_.augmentation.any()) stored = augmented(stored, gatherer_.draws(epoch, indices));
  return {scaling_(stored), labels_.index_select(0, chosen)};
}

at::Tensor ResidentSamples::augmented(const at::Tensor& stored,
                                      const std::vector<int64_t>& draws) const {
  const int64_t n = stored.size(0);
  const int64_t channels = stored.size(1);
  const int64_t height = stored.size(2);
  const int64_t width = stored.size(3);
  const at::Tensor drawn = numbers(draws, options_.device).reshape({n, Gatherer::kDraws});
  const auto draw = [&](int64_t i) { return drawn.narrow(1, i, 1); };
  const auto range = [&](int64_t count) { return at::arange(count, drawn.options()); };
  const at::Tensor rows = range(height);
  const at::Tensor columns = range(width);

  const at::Tensor y = rows + draw(Gatherer::kDown);
  const at::Tensor x =
      at::where(draw(Gatherer::kFlip).ne(0), width - 1 - columns, columns) + draw(Gatherer::kRight);
  const at::Tensor places =
      y.clamp(0, height - 1).unsqueeze(2) * width + x.clamp(0, width - 1).unsqueeze(1);
  at::Tensor result =
      stored.reshape({n, channels, height * width})
          .gather(2, places.reshape({n, 1, height * width}).expand({n, channels, height * width}))
          .reshape(stored.sizes());
  const at::Tensor zero = at::zeros({}, drawn.options());
  result.masked_fill_(both(within(y, zero, height), within(x, zero, width)).logical_not(), 0);
  if (const int64_t side = options_.augmentation.cutout; side > 0) {
    const at::Tensor hole = both(within(rows, draw(Gatherer::kCentreY) - side / 2, side),
                                 within(columns, draw(Gatherer::kCentreX) - side / 2, side));
    result = at::where(hole, fill_, result);
  }
  return result;
}

namespace {

at::Tensor per_channel(const std::vector<float>& values, size_t dims, c10::Device device) {
  Shape shape(dims + 1, 1);
  shape[1] = static_cast<int64_t>(values.size());
  return at::tensor(values).reshape(shape).to(device);
}

}  // namespace

DeviceScaling::DeviceScaling(const Gatherer& gatherer, size_t dims, const LoaderOptions& options)
    : factors_(per_channel(gatherer.factors(), dims, options.device)),
      offsets_(per_channel(gatherer.offsets(), dims, options.device)),
      dtype_(options.dtype),
      format_(options.channels_last ? c10::MemoryFormat::ChannelsLast
                                    : c10::MemoryFormat::Contiguous) {}

at::Tensor DeviceScaling::operator()(const at::Tensor& stored) const {
  const at::NoGradGuard no_grad;
  const at::Tensor inputs = stored.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  inputs.mul_(factors_).add_(offsets_);
  return inputs.to(dtype_, /*non_blocking=*/false, /*copy=*/false, format_);
}

}  // namespace parsimony::training
