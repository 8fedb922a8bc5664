#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {
namespace {

/// Writes down what it is asked to do.
class Recorder : public ModelEditor {
 public:
  void bypass(std::span<const BypassedNode> nodes) override {
    for (const auto& [node, input] : nodes) {
      calls.push_back("bypass " + node + " by " + std::to_string(input));
    }
  }
  void copy(const std::string& name, const std::string& of, const std::string& consumer,
            int input) override {
    calls.push_back("copy " + name + " of " + of + " for " + consumer + ":" +
                    std::to_string(input));
  }
  void slice(const std::string& tensor, std::span<const AxisKeep> axes) override {
    std::string call = "slice " + tensor;
    for (const AxisKeep& axis : axes) {
      call +=
          " " + std::to_string(axis.axis) + "/" + std::to_string(axis.size) + to_string(axis.keep);
    }
    calls.push_back(call);
  }
  void zero_smallest(const std::string& tensor, int64_t count) override {
    calls.push_back("zero " + std::to_string(count) + " of " + tensor);
  }
  void assign(const std::string& tensor, std::span<const std::byte> values) override {
    calls.push_back("assign " + std::to_string(values.size()) + " bytes to " + tensor);
  }
  void set_attribute(const std::string& node, const std::string& attribute,
                     std::span<const int64_t> values) override {
    calls.push_back("set " + node + "." + attribute + " " +
                    to_string(Shape(values.begin(), values.end())));
  }
  void set_number(const std::string& node, const std::string& attribute, double value) override {
    calls.push_back("set " + node + "." + attribute + " " + std::to_string(value));
  }
  void set_input(const std::string& node, int input, const HostTensor& constant) override {
    calls.push_back("feed " + node + ":" + std::to_string(input) + " " + to_string(constant.ints) +
                    " as " + to_string(constant.dims));
  }

  std::vector<std::string> calls;
};

using Calls = std::vector<std::string>;

Calls replayed(const Plan& plan) {
  Recorder recorder;
  replay(plan, recorder);
  return recorder.calls;
}

Plan slicing(std::vector<PlanSlice> slices) {
  Plan plan;
  plan.groups = {{"g0", 4, 2, "channel", false, std::move(slices)}};
  return plan;
}

TEST(Replay, AnEmptyPlanTouchesNothing) {
  EXPECT_EQ(replayed({}), Calls{});
  Plan plan = slicing({{"w", 0, Role::kOut, 2, {0, 1}}});
  plan.zeros = {{"w", 0}};
  EXPECT_EQ(replayed(plan), Calls{});
}

TEST(Replay, BlocksLeaveFirst) {
  Plan plan;
  plan.blocks = {{"add2", 1}, {"add5", 0}};
  EXPECT_FALSE(plan.empty());
  plan.copies = {{"b_2", "b", "add7", 1}};
  EXPECT_EQ(replayed(plan),
            (Calls{"bypass add2 by 1", "bypass add5 by 0", "copy b_2 of b for add7:1"}));
}

TEST(Replay, ABlockLeavesOnce) {
  Plan plan;
  plan.blocks = {{"add2", 1}, {"add2", 0}};
  try {
    replayed(plan);
    FAIL();
  } catch (const ModelError& error) {
    EXPECT_STREQ(error.what(), "plan: blocks: \"add2\" occurs twice");
  }
}

TEST(Replay, AModelThatKeepsItsNodesRefusesBlocks) {
  class Keeps : public Recorder {
    void bypass(std::span<const BypassedNode> nodes) override { ModelEditor::bypass(nodes); }
  } editor;
  Plan plan;
  plan.blocks = {{"add2", 1}};
  try {
    replay(plan, editor);
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_STREQ(
        error.what(),
        "the block of node \"add2\" cannot be removed: live modules keep their layers; export "
        "it to ONNX or TorchScript first");
  }
}

TEST(Replay, CopiesThenZerosThenSlicesThenIntegers) {
  Plan plan = slicing({{"b_2", 0, Role::kOut, 4, {0, 3}}});
  plan.integers = {{"flat", "shape", 1, HostTensor::vector({0, 4}), HostTensor::vector({0, 2})},
                   {"conv", "group", -1, HostTensor::scalar(4), HostTensor::scalar(2)},
                   {"split", "split", -1, HostTensor::vector({2, 2}), HostTensor::vector({1, 1})}};
  plan.copies = {{"b_2", "b", "add2", 1}};
  plan.zeros = {{"b_2", 3}};
  plan.updates = {{"b_2", "level"}};
  EXPECT_EQ(replayed(plan),
            (Calls{"copy b_2 of b for add2:1", "zero 3 of b_2", "slice b_2 0/4[0, 3]",
                   "feed flat:1 [0, 2] as [2]", "set conv.group [2]", "set split.split [1, 1]"}));
}

TEST(Replay, ANumberIsNoListOfIntegers) {
  Plan plan = slicing({{"w", 0, Role::kOut, 4, {0, 3}}});
  const auto number = [](double value) { return HostTensor{DType::kFloat32, {}, {}, {value}}; };
  plan.integers = {{"attention", "scale", -1, number(0.25), number(0.5)}};
  EXPECT_EQ(replayed(plan), (Calls{"slice w 0/4[0, 3]", "set attention.scale 0.500000"}));
  EXPECT_EQ(Plan::from_json(plan.to_json(), "p.json"), plan);
}

TEST(Replay, OneCutPerTensorWithAllItsAxes) {
  Plan plan = slicing({{"w2", 1, Role::kIn, 4, {0, 3}}, {"w1", 0, Role::kOut, 4, {0, 3}}});
  plan.groups.push_back({"g1", 3, 1, "channel", false, {{"w2", 0, Role::kOut, 3, {2}}}});
  EXPECT_EQ(replayed(plan), (Calls{"slice w2 0/3[2] 1/4[0, 3]", "slice w1 0/4[0, 3]"}));
}

TEST(Replay, OfOneAxisWhatAllSlicesKeepStays) {
  Plan plan = slicing({{"w", 1, Role::kIn, 6, {0, 1, 2, 5}}});
  plan.groups.push_back({"g1", 2, 1, "channel", false, {{"w", 1, Role::kIn, 6, {1, 2, 3, 4, 5}}}});
  EXPECT_EQ(replayed(plan), Calls{"slice w 1/6[1, 2, 5]"});
}

TEST(Replay, AWholeAxisIsNotCut) {
  const Plan plan = slicing({{"w", 0, Role::kOut, 2, {0, 1}}, {"w", 1, Role::kIn, 3, {1}}});
  EXPECT_EQ(replayed(plan), Calls{"slice w 1/3[1]"});
}

/// The plan is refused with this message, and nothing has been touched.
template <typename Kind>
void expect_refused(Plan plan, const std::string& message) {
  plan.copies = {{"b_2", "b", "add2", 1}};
  Recorder recorder;
  try {
    replay(plan, recorder);
    FAIL() << "accepted; expected: " << message;
  } catch (const Kind& error) {
    EXPECT_EQ(error.what(), message);
  }
  EXPECT_EQ(recorder.calls, Calls{});
}

TEST(Replay, RefusesBeforeItTouchesTheModel) {
  expect_refused<ConfigError>(
      slicing({{"w", 0, Role::kOut, 4, {0, 1}}, {"w", 0, Role::kOut, 3, {0}}}),
      "plan: tensor \"w\", axis 0: one slice has size 4, another 3");
  expect_refused<ConfigError>(
      slicing({{"w", 0, Role::kOut, 4, {0, 1}}, {"w", 0, Role::kOut, 4, {2, 3}}}),
      "plan: tensor \"w\", axis 0: its slices keep no index in common; at "
      "least one must stay");
  Plan folding;
  folding.updates = {{"conv.bias", "constant channels"}};
  expect_refused<UnsupportedError>(folding,
                                   "plan: updates: tensor \"conv.bias\": its new values are not "
                                   "there");
}

}  // namespace
}  // namespace parsimony
