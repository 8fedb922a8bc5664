// An endless loader, for measurements.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "parsimony/training/loader/loader.h"

namespace parsimony::training {

class EndlessLoader {
 public:
  /// @throws as Loader does
  EndlessLoader(const Samples& samples, LoaderOptions options)
      : loader_(samples, std::move(options)) {}

  /// `samples` must not be empty.
  Batch next() {
    std::optional<Batch> batch = loader_.next();
    while (!batch) {
      loader_.start(epoch_++);
      batch = loader_.next();
    }
    return *std::move(batch);
  }

 private:
  Loader loader_;
  int64_t epoch_ = 0;
};

}  // namespace parsimony::training
