// A sweep that nobody ran: the small CNN for CIFAR-10 with its true sizes, and made-up times and
// scores that look like a run's.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/report/ledger.h"

namespace parsimony::test {

/// In [-1, 1], the same for the same number.
inline double noise(uint64_t number) {
  number = (number + 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;
  number = (number ^ (number >> 27U)) * 0x94d049bb133111ebU;
  return static_cast<double>((number ^ (number >> 31U)) >> 11U) / double(uint64_t{1} << 52U) - 1;
}

inline int64_t kept(int64_t channels, double sparsity) {
  return channels - std::llround(static_cast<double>(channels) * sparsity);
}

/// Parameters of the network with `a` and `b` channels in its convolutions.
inline int64_t cnn_params(int64_t a, int64_t b) {
  return 28 * a + (9 * a + 1) * b + (64 * b + 1) * 512 + 5130;
}
inline int64_t cnn_macs(int64_t a, int64_t b) {
  return 1024 * 27 * a + 256 * 9 * a * b + 64 * b * 512 + 5120;
}

inline LedgerPoint::Score score_of(double share) { return {std::llround(share * 10000), 10000}; }

inline LedgerPoint::Phases phases_of(double macs, double epochs) {
  return {0.11 * epochs, 0.46e-6 * macs * epochs, 0.92e-6 * macs * epochs, 0.16e-6 * macs * epochs,
          0.31 * epochs};
}

inline LedgerPoint sample_point(const std::string& criterion, double sparsity, uint64_t seed) {
  const int64_t a = kept(32, sparsity);
  const int64_t b = kept(64, sparsity);
  const uint64_t id = seed * 131 + static_cast<uint64_t>(sparsity * 100) * 7 + criterion.size();
  const double loss = sparsity * sparsity * (criterion == "l1" ? 0.115 : 0.155);
  const double last = 0.471 - loss + 0.006 * noise(id);
  constexpr int kEpochs = 10;

  LedgerPoint p;
  p.criterion = criterion;
  p.sparsity = sparsity;
  p.seed = seed;
  p.key =
      criterion + "-" + std::to_string(std::lround(sparsity * 100)) + "-" + std::to_string(seed);
  p.model = {"cnn", std::string(64, 'c')};
  p.data = {"cifar10", std::string(64, 'd'), 50000, 10000};
  p.config = R"({"optimizer":"adam","lr":1e-05,"epochs":10,"warmup_epochs":1})";
  p.params = {cnn_params(32, 64), cnn_params(a, b)};
  p.macs = {cnn_macs(32, 64), cnn_macs(a, b)};
  p.bytes = {4 * p.params.before + 1180, 4 * p.params.after + 1180};
  const double dense = static_cast<double>(p.macs.before);
  const double small = static_cast<double>(p.macs.after);
  p.latency_ms = {2.9 + dense * 1.1e-6, 2.9 * small / dense + small * 1.1e-6, 64};
  p.warm_up = phases_of(dense, 1);
  p.prune_seconds = sparsity == 0 ? 0 : 0.18;
  p.train = phases_of(small * (1 + 0.02 * noise(id + 1)), kEpochs);
  p.evaluate_seconds = 4.2e-6 * small;
  p.before = score_of(0.302 + 0.004 * noise(seed));
  p.pruned = sparsity == 0 ? p.before : score_of(0.302 * (1 - 0.8 * sparsity));
  for (int e = 0; e < kEpochs; ++e) {
    const double done = std::sqrt((e + 1.0) / kEpochs);
    const double share = e + 1 == kEpochs ? last : 0.30 + (last - 0.30) * done;
    p.epochs.push_back({p.train.total() / kEpochs, 2.1 - 0.6 * done, score_of(share)});
  }
  p.after = p.epochs.back().score;
  p.layers = {{"conv1", "Conv2d", 32, a},
              {"conv2", "Conv2d", 64, b},
              {"fc1", "Linear", 512, 512},
              {"fc2", "Linear", 10, 10}};
  p.unpruned_dims = {{"fc1.weight[0]", "the configuration names only Conv2d"},
                     {"fc2.weight[0]", "graph output \"logits\""}};
  if (sparsity > 0) {
    p.proof = {true,
               3.1e-7 * (2 + noise(id + 2)),
               1e-4,
               "the original with the removed slices set to zero",
               {}};
  }
  p.machine = {"AMD EPYC 7763", 16, 16};
  p.version = "0.1.0";
  p.command = "parsimony sweep --config configs/cifar10_cnn_sweep.json --data cifar10:data";
  return p;
}

/// The dense network, and two criteria at five sparsities, with three seeds each.
inline std::vector<LedgerPoint> sample_sweep() {
  std::vector<LedgerPoint> points;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    points.push_back(sample_point("l1", 0, seed));
    for (const char* criterion : {"l1", "random"}) {
      for (const double sparsity : {0.2, 0.4, 0.5, 0.6, 0.8}) {
        points.push_back(sample_point(criterion, sparsity, seed));
      }
    }
  }
  return points;
}

/// Points whose every name tries to be markup.
inline std::vector<LedgerPoint> hostile_sweep() {
  const std::string bad = "</script><img src=x onerror=\"window.harmed=1\">'&lt;<!--]]>";
  std::vector<LedgerPoint> points;
  for (const double sparsity : {0.0, 0.5}) {
    LedgerPoint p = sample_point("l1", sparsity, 0);
    p.criterion = bad;
    p.model.name = bad + std::string(300, 'm');
    p.data.name = bad;
    p.key += bad;
    p.config = "{\"x\": \"</script><script>window.harmed=1</script>\"}";
    for (LedgerPoint::Layer& layer : p.layers) layer = {bad + layer.name, bad, 8, 4};
    p.unpruned_dims = {{bad, bad}};
    p.machine = {bad, 1, 1};
    p.version = bad;
    p.command = "parsimony sweep " + bad;
    if (p.proof) p.proof->against = bad;
    points.push_back(std::move(p));
  }
  return points;
}

/// The lines of its ledger.
inline std::string sample_ledger(const std::vector<LedgerPoint>& points = sample_sweep()) {
  std::string text;
  for (const LedgerPoint& point : points) text += to_json_line(point) + "\n";
  return text;
}

}  // namespace parsimony::test
