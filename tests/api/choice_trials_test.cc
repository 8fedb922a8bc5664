// Criteria that are compared by the networks that they give.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "parsimony/api/choice_trials_impl.h"
#include "parsimony/api/prune_model.h"
#include "parsimony/base/errors.h"
#include "parsimony/onnx_io/model.h"
#include "tests/api/measured_network.h"
#include "tests/support/message_of.h"

namespace parsimony::test {
namespace {

/// The measures rank channels differently, and each recovery has the next of `errors_`.
class Trials : public ::testing::Test {
 protected:
  Trials() {
    services_.measure = [this](const Graph&, const Facts&, const Coupling& coupling,
                               const Needs& needs) {
      ++measured_;
      if (needs.channels.contains(unsupported_)) throw UnsupportedError("no gradients");
      Statistics statistics;
      statistics.samples = 1;
      for (const Group& group : coupling.groups) {
        statistics.groups.push_back(group.id);
        for (const Measure measure : needs.channels) {
          std::vector<double>& scores = statistics.channels[measure].emplace_back(group.size);
          const int factor = measure == Measure::kFisher ? 3 : 7;
          for (int c = 0; c < group.size; ++c) scores[c] = 1 + c * factor % group.size;
        }
      }
      return statistics;
    };
    services_.recover = [this](const Graph&, const Plan&) {
      Recovered recovered;
      recovered.report.before.error = 9;
      recovered.report.steps.emplace_back().after.error = errors_.at(recovered_++);
      return recovered;
    };
  }

  PruneResult pruned(const std::string& criterion) {
    onnx_io::OnnxModel model(net_.folder / "net.onnx");
    return prune_model(model, from_shorthand({.criterion = criterion, .ratio = 0.5}), services_);
  }

  MeasuredNetwork net_{
      "g (float[1,3,8,8] x) => (float[1,4,8,8] y)\n"
      "{ a = Conv(x, W1)\n b = Conv(a, W2)\n y = Conv(b, W3) }",
      {{"W1", "16x3x1x1"}, {"W2", "16x16x1x1"}, {"W3", "4x16x1x1"}}};
  PruneServices services_;
  Measure unsupported_ = Measure::kMovement;
  std::vector<double> errors_ = {0.5, 0.2, 0.3};
  size_t recovered_ = 0;
  int measured_ = 0;
};

TEST_F(Trials, KeepTheNetworkOfLeastError) {
  const PruneResult best = pruned("l1,fisher,taylor");
  EXPECT_EQ(measured_, 1) << "of all in one pass";
  EXPECT_EQ(recovered_, 3U) << "the best is not recovered again";
  ASSERT_TRUE(best.recovery.has_value());
  EXPECT_EQ(best.recovery->steps.at(0).after.error, 0.2);
  EXPECT_EQ(best.notes.back(),
            "criterion fisher has the smallest output error: l1 0.5000, fisher 0.2000, taylor "
            "0.3000");
  const auto recoveries = std::ranges::count(best.times, "recover", &StageTime::stage);
  EXPECT_EQ(recoveries, 1);
  services_.recover = {};
  EXPECT_EQ(best.plan, pruned("fisher").plan);
  EXPECT_NE(best.plan, pruned("taylor").plan);
}

TEST_F(Trials, AreRepairedBeforeTheRecovery) {
  services_.repair = services_.recover;
  int finished = 0;
  services_.recover = [&](const Graph&, const Plan&) {
    ++finished;
    Recovered recovered;
    recovered.report.before.error = 0.1;
    return recovered;
  };
  const PruneResult best = pruned("l1,fisher,taylor");
  EXPECT_EQ(recovered_, 3U);
  EXPECT_EQ(finished, 1) << "of the best alone";
  EXPECT_EQ(best.recovery->before.error, 0.1);
}

TEST_F(Trials, DoNotPreferANetworkBecauseItLosesLess) {
  errors_ = {0.5, 0.1};
  onnx_io::OnnxModel model(net_.folder / "net.onnx");
  services_.score = [this](const Graph&, const Group& group, const CriterionOptions&) {
    return recovered_ > 0 && group.id != "g1" ? Scores() : Scores(group.size, 1.0);
  };
  const PruneResult best =
      prune_model(model, from_shorthand({.criterion = "l1,l2", .ratio = 0.5}), services_);
  EXPECT_EQ(best.notes.back(),
            "criterion l1 has the smallest output error: l1 0.5000, l2 0.1000 (removes less)");
}

TEST_F(Trials, LeaveOutWhatCannotBeMeasured) {
  unsupported_ = Measure::kFisher;
  const PruneResult best = pruned("l1,fisher,taylor");
  EXPECT_EQ(best.notes.back(),
            "criterion taylor has the smallest output error: l1 0.5000, taylor 0.2000; left out: "
            "fisher (no gradients)");
  services_.measure = [](const auto&...) -> Statistics { throw ModelError("no classes"); };
  EXPECT_EQ(message_of<UnsupportedError>([&] { pruned("fisher,taylor"); }),
            "no criterion can be used: fisher (no classes), taylor (no classes)");
}

TEST_F(Trials, CompareScopesAndMakeNoPlanTwice) {
  onnx_io::OnnxModel model(net_.folder / "net.onnx");
  const auto asked = [](const std::string& scope) {
    return from_shorthand({.criterion = "random,l1", .ratio = 0.5, .scope = scope});
  };
  const PruneResult best = prune_model(model, asked("local,isomorphic,global"), services_);
  EXPECT_EQ(best.notes.back(),
            "criterion l1 local has the smallest output error: random local 0.5000, random "
            "isomorphic as random local, random global as random local, l1 local 0.2000, l1 "
            "isomorphic 0.3000, l1 global as l1 isomorphic");
  EXPECT_EQ(recovered_, 3U);
}

TEST_F(Trials, RequireData) {
  services_.recover = {};
  EXPECT_EQ(message_of<ConfigError>([&] { pruned("l1,l2"); }),
            "several criteria or scopes are compared by the outputs of the pruned networks, which "
            "requires calibration data: pass --calibration DATA (in a program "
            "PruneServices::repair), or name one");
}

}  // namespace
}  // namespace parsimony::test
