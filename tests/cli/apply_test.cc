#include <gtest/gtest.h>

#include "parsimony/speedup/plan.h"
#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

TEST(CliApply, GivesTheBytesOfTheRunThatMadeThePlan) {
  const Workplace place;
  for (const std::string& model : {std::string("cnn.onnx"), "'" + mnist() + "'"}) {
    ASSERT_EQ(place.run("prune " + model + " -o a.onnx --ratio 0.4 --plan p.json").code, 0);
    const Outcome outcome = place.run("apply " + model + " --plan p.json -o b.onnx");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(place.bytes("a.onnx"), place.bytes("b.onnx"));
  }
}

TEST(CliApply, AnEmptyPlanGivesTheSameBytes) {
  const Workplace place;
  ASSERT_EQ(place.run("prune cnn.onnx -o a.onnx --ratio 0 --plan p.json").code, 0);
  ASSERT_EQ(place.run("apply cnn.onnx --plan p.json -o b.onnx").code, 0);
  EXPECT_EQ(place.bytes("b.onnx"), place.bytes("cnn.onnx"));
}

TEST(CliApply, NotesThatThePlanWasMadeForAnotherFile) {
  const Workplace place;
  ASSERT_EQ(place.run("prune cnn.onnx -o a.onnx --ratio 0.5 --plan p.json").code, 0);
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(place.bytes("cnn.onnx")));
  model.set_producer_name("somebody");
  place.write("other.onnx", model.SerializeAsString());
  const Outcome outcome = place.run("apply other.onnx --plan p.json -o b.onnx");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "note: p.json was made for another file than other.onnx, but fits it\n");
}

TEST(CliApply, APlanThatDoesNotFitWritesNothing) {
  const Workplace place;
  ASSERT_EQ(place.run("prune cnn.onnx -o a.onnx --ratio 0.5 --plan p.json").code, 0);
  const Outcome outcome = place.run("apply whole.onnx --plan p.json -o b.onnx");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_TRUE(outcome.err.starts_with("parsimony: ")) << outcome.err;
  EXPECT_NE(outcome.err.find("w1"), std::string::npos) << outcome.err;
  EXPECT_FALSE(place.has("b.onnx"));
}

TEST(CliApply, WhatIsNoPlanIsRefused) {
  const Workplace place;
  place.write("p.json", "{\"parsimony_plan\": 1, \"groups\": 3}");
  const Outcome outcome = place.run("apply cnn.onnx --plan p.json -o b.onnx");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.err.starts_with("parsimony: p.json")) << outcome.err;
  EXPECT_FALSE(place.has("b.onnx"));
}

}  // namespace
}  // namespace parsimony::test
