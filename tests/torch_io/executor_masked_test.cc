// Masked execution against the small network: for every operator fixture, half of each group and
// single channels.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <set>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/speedup/make_plan.h"
#include "parsimony/torch_io/executor/choices.h"
#include "tests/support/fixture.h"
#include "tests/torch_io/executor_support.h"

namespace parsimony::test {
namespace {

/// Files of one model, its analysis, and small networks made of it.
class Bench {
 public:
  explicit Bench(const Fixture& fixture)
      : request_(request_of(fixture)),
        file_(written(folder_, fixture)),
        graph_(onnx_io::to_graph(file_)),
        plain_(onnx_io::to_graph(file_)),
        analysis_(analyse(graph_, request_)) {}

  const Graph& plain() const { return plain_; }
  const Coupling& coupling() const { return analysis_.coupling; }
  /// Of the probe's sizes, or of small ones where an index would leave its table.
  Tensors inputs(int seed) const {
    Tensors x = seeded_inputs(plain_, analysis_.probe, seed);
    try {
      run(plain_, x);
    } catch (const ModelError&) {
      Probe probe = analysis_.probe;
      probe.other = 8;
      x = seeded_inputs(plain_, probe, seed);
    }
    return x;
  }

  AxisMasks all() const { return AxisMasks::all_kept(coupling()); }

  Plan plan(AxisMasks masks) const {
    keep_enough(coupling(), {}, masks);
    PlanAttempt attempt = make_plan(graph_, analysis_.facts, coupling(), masks);
    if (!attempt.refused.empty()) throw std::runtime_error("refused");
    return std::move(attempt.plan);
  }

  /// Empty if the small network computes what the masked one does.
  std::string difference(const Plan& plan) {
    onnx_io::ModelFile file(folder_ / "model.onnx");
    onnx_io::OnnxEditor editor(file);
    apply_plan(plan, graph_, analysis_.probe, editor);
    file.write(folder_ / "small.onnx");
    const onnx_io::ModelFile small_file(folder_ / "small.onnx");
    const Graph small = onnx_io::to_graph(small_file);
    for (int seed = 1; seed <= 2; ++seed) {
      const Tensors x = inputs(seed);
      const std::string apart = apart_on(x, small, plan, /*alike=*/false);
      // Where both select from numbers that differ in the last bit, they may select otherwise.
      if (!apart.empty() && !apart_on(x, small, plan, /*alike=*/true).empty()) return apart;
    }
    return "";
  }

 private:
  /// The first output in which the small network differs from the masked one.
  /// @param alike  it selects from the masked one's numbers, and its own are compared as well
  std::string apart_on(const Tensors& x, const Graph& small, const Plan& plan, bool alike) {
    constexpr double kTolerance = 1e-4;
    Choices choices;
    std::optional<Choices::Use> use;
    if (alike) use.emplace(choices, Choices::Mode::kRecord);
    const Tensors masked = run(plain_, x, &plan);
    if (alike) use.emplace(choices, Choices::Mode::kReplay);
    const Tensors expected = run(small, x);
    for (size_t i = 0; i < expected.size(); ++i) {
      const double error = relative_error(masked.at(i), expected[i]);
      if (error > kTolerance) return "output " + std::to_string(i) + ": " + std::to_string(error);
    }
    for (const Choice& choice : choices.list()) {
      const bool both = choice.numbers.defined() && choice.found.defined();
      if (!both || relative_error(choice.found, choice.numbers) > kTolerance) return choice.node;
    }
    return "";
  }

  static PruneRequest request_of(const Fixture& fixture) {
    PruneRequest request;
    request.granularity = parse_granularity(fixture.granularity, fixture.name);
    for (const std::string& spec : fixture.inputs) {
      request.inputs.push_back(parse_input_spec(spec));
    }
    return request;
  }

  static std::string written(const TemporaryFolder& folder, const Fixture& fixture) {
    std::string path = folder / "model.onnx";
    write_file(path, fixture.model.SerializeAsString());
    return path;
  }

  TemporaryFolder folder_;
  PruneRequest request_;
  onnx_io::ModelFile file_;
  Graph graph_;
  Graph plain_;
  Analysis analysis_;
};

AxisMasks half(const Bench& bench, unsigned seed) {
  AxisMasks masks = bench.all();
  std::mt19937 random(seed);
  for (auto& group : masks.keep) {
    for (auto& keep : group) keep = random() % 2 == 0 ? 1 : 0;
  }
  return masks;
}

/// Forms that ONNX Runtime runs and the executor does not.
const std::set<std::string> kNotRun = {"label_encoder"};  // words

TEST(ExecutorMasked, IsTheSmallNetworkForEveryFixture) {
  int compared = 0;
  int mixing = 0;
  for (const Fixture& fixture : all_fixtures()) {
    SCOPED_TRACE(fixture.name);
    try {
      Bench bench(fixture);
      if (!runs(bench.plain())) continue;
      std::vector<Plan> plans{bench.plan(half(bench, 1)), bench.plan(half(bench, 2))};
      for (const GroupId g : bench.coupling().groups.ids()) {
        AxisMasks masks = bench.all();
        masks.keep[g].front() = 0;
        plans.push_back(bench.plan(std::move(masks)));
      }
      for (const Plan& plan : plans) {
        if (plan.empty()) continue;
        EXPECT_EQ(bench.difference(plan), "");
        ++compared;
        for (const PlanGroup& group : plan.groups) mixing += group.mixes ? 1 : 0;
      }
    } catch (const UnsupportedError& error) {
      EXPECT_TRUE(kNotRun.contains(fixture.name)) << error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  std::cout << compared << " plans, " << mixing << " groups that mix\n";
  if (std::getenv("PARSIMONY_FIXTURE") != nullptr) return;
  EXPECT_GE(compared, 900);
  EXPECT_GE(mixing, 100);
}

}  // namespace
}  // namespace parsimony::test
