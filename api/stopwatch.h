// Times the stages of a pruning.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "parsimony/api/prune.h"

namespace parsimony {

/// Times consecutive stages and reports their start.
class Stopwatch {
 public:
  Stopwatch(std::vector<StageTime>& times, const PruneServices& services)
      : times_(times), services_(services) {}

  /// Runs `work` and adds its time to the stage.
  template <typename Work>
  auto operator()(std::string_view stage, Work&& work) {
    if (services_.progress) services_.progress(stage);
    const auto begin = std::chrono::steady_clock::now();
    if constexpr (std::is_void_v<decltype(work())>) {
      work();
      add(stage, begin);
    } else {
      auto result = work();
      add(stage, begin);
      return result;
    }
  }

 private:
  void add(std::string_view stage, std::chrono::steady_clock::time_point begin) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    const auto it =
        std::ranges::find_if(times_, [&](const StageTime& t) { return t.stage == stage; });
    if (it == times_.end()) {
      times_.push_back({std::string(stage), passed.count()});
    } else {
      it->seconds += passed.count();
    }
  }

  std::vector<StageTime>& times_;
  const PruneServices& services_;
};

}  // namespace parsimony
