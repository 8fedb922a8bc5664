#include "parsimony/training/loader/loader.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <thread>

#include "parsimony/base/errors.h"
#include "parsimony/base/random.h"
#include "parsimony/training/loader/gather_impl.h"
#include "parsimony/training/loader/queue_impl.h"
#include "parsimony/training/loader/resident_impl.h"

namespace parsimony::training {
namespace {

using Clock = std::chrono::steady_clock;

void require(bool holds, std::string_view option, const std::string& found,
             std::string_view expected) {
  if (!holds) throw ConfigError("loader: ", option, " is ", found, ", expected ", expected);
}

void check_scale(const Samples& samples, const LoaderOptions& options) {
  require(std::isfinite(options.scale) && options.scale != 0, "scale",
          std::to_string(options.scale), "a nonzero number");
  const size_t means = options.mean.size();
  const size_t deviations = options.deviation.size();
  const size_t channels = samples.dims.front();
  require(means == deviations && (means == 0 || means == channels),
          "number of means and deviations",
          std::to_string(means) + " and " + std::to_string(deviations),
          std::to_string(channels) + " of each, or none");
  for (const double deviation : options.deviation) {
    require(deviation > 0, "deviation", std::to_string(deviation), "a positive number");
  }
}

void check_augmentation(const Samples& samples, const Augmentation& expected) {
  const bool images = samples.dims.size() == 3;
  require(!expected.any() || images, "augmentation", "on for samples of " + to_string(samples.dims),
          "images [c, h, w]");
  const int64_t most = images ? std::min(samples.dims[1], samples.dims[2]) : 0;
  const auto check = [&](std::string_view what, int64_t pixels) {
    require(pixels >= 0 && pixels <= most, what, std::to_string(pixels),
            "0 to " + std::to_string(most) + " pixels");
  };
  check("crop", expected.crop);
  check("cutout", expected.cutout);
}

LoaderOptions checked(const Samples& samples, LoaderOptions options) {
  require(options.batch >= 1, "batch", std::to_string(options.batch), "at least 1");
  require(options.prefetch >= 0, "prefetch", std::to_string(options.prefetch), "at least 0");
  require(options.dtype == c10::kFloat || options.dtype == c10::kBFloat16 ||
              options.dtype == c10::kHalf || options.dtype == c10::kLong,
          "type of inputs", c10::toString(options.dtype), "float32, bfloat16, float16 or int64");
  require(!options.channels_last || samples.dims.size() == 3, "memory format",
          "channels-last for samples of " + to_string(samples.dims), "images [c, h, w]");
  require(samples.count() > 0, "number of samples", "0", "at least 1");
  const int64_t bytes = samples.count() * samples.stride();
  require(static_cast<int64_t>(samples.values.size()) == bytes, "size of the samples",
          std::to_string(samples.values.size()), std::to_string(bytes) + " bytes");
  check_scale(samples, options);
  check_augmentation(samples, options.augmentation);
  return options;
}

}  // namespace

LoaderOptions with_scale_of(const Dataset& data, LoaderOptions options) {
  options.scale = data.scale;
  options.mean = data.mean;
  options.deviation = data.deviation;
  if (data.tokens) options.dtype = c10::kLong;
  return options;
}

LoaderOptions for_evaluation(LoaderOptions options) {
  options.shuffle = false;
  options.drop_last = false;
  options.augmentation = {};
  options.resident = false;
  return options;
}

class Loader::Worker {
 public:
  Worker(const Samples& samples, LoaderOptions options)
      : samples_(samples),
        options_(checked(samples, std::move(options))),
        gatherer_(samples_, options_) {
    if (!options_.resident && !options_.device.is_cpu()) {
      scaling_.emplace(gatherer_, samples.dims.size(), options_);
    }
  }

  ~Worker() { stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  int64_t batches() const {
    const int64_t count = samples_.count();
    return options_.drop_last ? count / options_.batch
                              : (count + options_.batch - 1) / options_.batch;
  }

  void start(int64_t epoch, int64_t first_batch) {
    stop();
    epoch_ = epoch;
    next_ = std::max<int64_t>(first_batch, 0);
    order();
    if (options_.resident) {
      if (!resident_) resident_.emplace(samples_, gatherer_, options_);
      chunk_ = {};
      return;
    }
    if (options_.prefetch == 0) return;
    queue_ = std::make_unique<BoundedQueue<Batch>>(static_cast<size_t>(options_.prefetch));
    thread_ = std::jthread([this] { run(); });
  }

  std::optional<Batch> next() {
    const Clock::time_point begin = Clock::now();
    std::optional<Batch> batch;
    if (queue_) {
      batch = queue_->pop();
    } else if (next_ < batches() && !order_.empty()) {
      batch = resident_ ? from_chunk(next_) : gather(next_);
      ++next_;
    }
    if (batch && scaling_) move_to_device(*batch);
    waited_ += Clock::now() - begin;
    return batch;
  }

  double wait_seconds() const { return waited_.count(); }

 private:
  void stop() {
    if (!queue_) return;
    queue_->cancel();
    thread_.join();
    queue_.reset();
  }

  void order() {
    if (options_.shuffle) {
      order_ = permutation(samples_.count(), Random(options_.seed, static_cast<uint64_t>(epoch_)));
    } else if (order_.empty()) {
      order_.resize(samples_.count());
      std::iota(order_.begin(), order_.end(), int64_t{0});
    }
  }

  void run() {
    try {
      while (next_ < batches()) {
        if (!queue_->push(gather(next_))) return;
        ++next_;
      }
      queue_->end();
    } catch (...) {
      queue_->end(std::current_exception());
    }
  }

  /// The indices of a batch.
  struct Share {
    std::span<const int64_t> indices;  ///< of this rank
    int64_t of_all = 0;
  };
  Share share_of(int64_t batch) const {
    const int64_t first = batch * options_.batch;
    const int64_t of_all = std::min(options_.batch, samples_.count() - first);
    const int64_t begin = first + of_all * options_.rank / options_.ranks;
    const int64_t count = first + of_all * (options_.rank + 1) / options_.ranks - begin;
    return {std::span(order_).subspan(begin, count), of_all};
  }

  /// Makes many resident batches at a time: a device is faster than its launches.
  Batch from_chunk(int64_t index) {
    const Share own = share_of(index);
    if (!chunk_.inputs.defined() || index >= chunk_end_) {
      constexpr int64_t kBytes = int64_t{16} << 20;
      const int64_t batches =
          std::max<int64_t>(1, kBytes / (samples_.stride() * std::max<int64_t>(1, options_.batch)));
      chunk_end_ = std::min(index + batches, this->batches());
      std::vector<int64_t> indices;
      for (int64_t i = index; i < chunk_end_; ++i) {
        const Share share = share_of(i);
        indices.insert(indices.end(), share.indices.begin(), share.indices.end());
      }
      chunk_ = resident_->chunk(epoch_, indices);
      chunk_used_ = 0;
    }
    const int64_t count = std::ssize(own.indices);
    const int64_t from = std::exchange(chunk_used_, chunk_used_ + count);
    return {chunk_.inputs.narrow(0, from, count), chunk_.labels.narrow(0, from, count), index,
            own.of_all};
  }

  Batch gather(int64_t index) const {
    const auto [indices, of_all] = share_of(index);
    const int64_t count = std::ssize(indices);
    const bool here = options_.device.is_cpu();
    const auto pinned = at::TensorOptions().pinned_memory(!here);
    Batch batch;
    batch.index = index;
    batch.of_all = of_all;
    const auto batch_of = [&](Shape dims) {
      dims.insert(dims.begin(), count);
      return dims;
    };
    batch.labels = at::empty(batch_of(samples_.label_dims), pinned.dtype(at::kLong));
    auto* labels = batch.labels.data_ptr<int64_t>();
    const int64_t per_sample = element_count(samples_.label_dims);
    for (const int64_t i : indices) {
      labels = std::copy_n(samples_.labels.data() + i * per_sample, per_sample, labels);
    }
    const Shape shape = batch_of(samples_.dims);
    if (!here) {
      const auto stored = samples_.dtype == DType::kUInt8 ? at::kByte : at::kFloat;
      batch.inputs = at::empty(shape, pinned.dtype(stored));
      gatherer_.gather(epoch_, indices, static_cast<std::byte*>(batch.inputs.data_ptr()));
      return batch;
    }
    const auto format =
        options_.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
    batch.inputs = at::empty(shape, at::TensorOptions().dtype(options_.dtype), format);
    switch (options_.dtype) {
      case at::kBFloat16:
        gatherer_.gather(epoch_, indices, batch.inputs.data_ptr<at::BFloat16>());
        break;
      case at::kHalf:
        gatherer_.gather(epoch_, indices, batch.inputs.data_ptr<at::Half>());
        break;
      case at::kLong:
        gatherer_.gather(epoch_, indices, batch.inputs.data_ptr<int64_t>());
        break;
      default:
        gatherer_.gather(epoch_, indices, batch.inputs.data_ptr<float>());
    }
    return batch;
  }

  void move_to_device(Batch& batch) const {
    const at::NoGradGuard no_grad;
    batch.labels = batch.labels.to(options_.device, /*non_blocking=*/true);
    batch.inputs = (*scaling_)(batch.inputs.to(options_.device, /*non_blocking=*/true));
  }

  const Samples& samples_;
  const LoaderOptions options_;
  const Gatherer gatherer_;
  std::optional<DeviceScaling> scaling_;  ///< set unless inputs are converted while gathered
  std::optional<ResidentSamples> resident_;
  ResidentSamples::Chunk chunk_;  ///< of batches up to `chunk_end_`
  int64_t chunk_end_ = 0;
  int64_t chunk_used_ = 0;  ///< samples
  std::vector<int64_t> order_;
  int64_t epoch_ = 0;
  int64_t next_ = 0;  ///< used by the thread if there is one
  std::unique_ptr<BoundedQueue<Batch>> queue_;
  std::jthread thread_;
  std::chrono::duration<double> waited_{0};
};

Loader::Loader(const Samples& samples, LoaderOptions options)
    : worker_(std::make_unique<Worker>(samples, std::move(options))) {}

Loader::~Loader() = default;

void Loader::start(int64_t epoch, int64_t first_batch) { worker_->start(epoch, first_batch); }

std::optional<Batch> Loader::next() { return worker_->next(); }

int64_t Loader::batches() const { return worker_->batches(); }

double Loader::wait_seconds() const { return worker_->wait_seconds(); }

}  // namespace parsimony::training
