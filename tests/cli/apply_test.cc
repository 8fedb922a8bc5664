#include <gtest/gtest.h>

#include <filesystem>

#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/speedup/plan.h"
#include "tests/cli/command.h"
#include "tests/support/same_bytes.h"

namespace parsimony::test {
namespace {

TEST(CliApply, GivesTheBytesOfTheRunThatMadeThePlan) {
  const Workplace place;
  for (const std::string& model : {std::string("cnn.onnx"), "'" + mnist() + "'"}) {
    ASSERT_EQ(place.run("prune " + model + " -o a.onnx --ratio 0.4 --plan p.json").code, 0);
    const Outcome outcome = place.run("apply " + model + " --plan p.json -o b.onnx");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_TRUE(same_bytes(place.bytes("a.onnx"), place.bytes("b.onnx")));
  }
}

TEST(CliApply, FoldsTakeTheirValuesFromTheFileBesideThePlan) {
  const Workplace place;
  ASSERT_EQ(place.run("prune cnn.onnx -o a.onnx --ratio 0.5 --plan p.json").code, 0);
  Plan plan = Plan::load(place / "p.json");
  const onnx_io::ModelFile small(place / "a.onnx");
  const Graph graph = onnx_io::to_graph(small);
  const Weight& weight = graph.weights.front();
  std::vector<std::byte> values(weight.count() * size_of(weight.dtype));
  plan.updates.push_back({weight.name, "blank", values, weight.dtype, weight.dims});
  plan.save(place / "p.json");

  ASSERT_EQ(place.run("apply cnn.onnx --plan p.json -o b.onnx").code, 0);
  ASSERT_EQ(place.run("apply cnn.onnx --plan p.json -o c.onnx").code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("b.onnx"), place.bytes("c.onnx")));
  const onnx_io::ModelFile folded(place / "b.onnx");
  const Weight zero = onnx_io::to_graph(folded).weights.front();
  ASSERT_EQ(zero.dims, weight.dims);
  for (int64_t i = 0; i < zero.count() * size_of(zero.dtype); ++i) {
    ASSERT_EQ(zero.data[i], std::byte{0}) << i;
  }

  std::filesystem::remove(place / "p.json.safetensors");
  const Outcome outcome = place.run("apply cnn.onnx --plan p.json -o d.onnx");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_NE(outcome.err.find("p.json.safetensors"), std::string::npos) << outcome.err;
}

TEST(CliApply, APlanMayBeAllThatAPruningWrites) {
  const Workplace place;
  ASSERT_EQ(place.run("prune cnn.onnx -o a.onnx --ratio 0.4").code, 0);
  const Outcome planned = place.run("prune cnn.onnx --ratio 0.4 --plan p.json");
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_EQ(planned.out.find("file, bytes"), std::string::npos) << planned.out;
  ASSERT_EQ(place.run("apply cnn.onnx --plan p.json -o b.onnx").code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("a.onnx"), place.bytes("b.onnx")));
  const Outcome nothing = place.run("prune cnn.onnx --ratio 0.4");
  EXPECT_EQ(nothing.code, 2);
  EXPECT_NE(nothing.err.find("--output OUT is required, or --plan alone"), std::string::npos);
}

TEST(CliApply, AnEmptyPlanGivesTheSameBytes) {
  const Workplace place;
  ASSERT_EQ(place.run("prune cnn.onnx -o a.onnx --ratio 0 --plan p.json").code, 0);
  ASSERT_EQ(place.run("apply cnn.onnx --plan p.json -o b.onnx").code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("b.onnx"), place.bytes("cnn.onnx")));
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
  EXPECT_EQ(outcome.err,
            "note: p.json was made for a different file than other.onnx, but fits it\n");
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
