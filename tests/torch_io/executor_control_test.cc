// If, Loop and Scan: bodies, what they read around them, and what they do not allow.
#include <gtest/gtest.h>

#include <optional>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "tests/support/fixture.h"
#include "tests/torch_io/executor_support.h"

namespace parsimony::test {
namespace {

/// A graph and the file that it is a view of.
struct Read {
  explicit Read(const std::string& text) {
    write_file(folder / "model.onnx", model_of(text).SerializeAsString());
    file.emplace(folder / "model.onnx");
    graph = onnx_io::to_graph(*file);
  }

  TemporaryFolder folder;
  std::optional<onnx_io::ModelFile> file;
  Graph graph;
};

at::Tensor floats(std::vector<float> values) { return at::tensor(values); }
at::Tensor flag(bool value) { return at::scalar_tensor(value, at::kBool); }

constexpr const char* kNested = R"(g (bool c, bool d, float[2] x) => (float[2] y) {
  a = Relu (x)
  y = If (c) <
    then_branch = t () => (float[2] o) {
      own = Neg (a)
      o = If (d) < then_branch = u () => (float[2] p) { p = Add (own, x) },
                   else_branch = v () => (float[2] own2) { own2 = Identity (own) } >
    },
    else_branch = e () => (float[2] a) { } >
})";

TEST(Control, IfTakesItsBranchAndReadsAroundIt) {
  const Read read(kNested);
  const at::Tensor x = floats({-1, 2});
  const auto y = [&](bool c, bool d) { return run(read.graph, {flag(c), flag(d), x}).at(0); };
  EXPECT_TRUE(y(true, true).equal(floats({-1, 0})));
  EXPECT_TRUE(y(true, false).equal(floats({0, -2})));
  EXPECT_TRUE(y(false, true).equal(floats({0, 2}))) << "a branch may hand on what it captured";
}

TEST(Control, WhatABranchReadsIsComputedBeforeIt) {
  const Read read(R"(g (bool c, float[2] x) => (float[2] y) {
    y = If (c) < then_branch = t () => (float[2] o) { o = Neg (late) },
                 else_branch = e () => (float[2] p) { p = Neg (x) } >
    late = Exp (x)
  })");
  EXPECT_TRUE(run(read.graph, {flag(true), floats({0, 0})}).at(0).equal(floats({-1, -1})));
}

// Sum of 0 … m - 1 and its way there: carried state, and what is scanned.
constexpr const char* kLoop = R"(g (int64 m, bool go, float start) => (float end, float[N] way) {
  end, way = Loop (m, go, start) <
    body = b (int64 i, bool on, float s) => (bool on_out, float s_out, float scan) {
      step = Cast <to = 1> (i)
      s_out = Add (s, step)
      scan = Identity (s_out)
      limit = Constant <value = float {5.0}> ()
      on_out = Less (s_out, limit)
    } >
})";

TEST(Control, LoopCarriesScansAndStops) {
  const Read read(kLoop);
  const auto loop = [&](int64_t m, bool go) {
    return run(read.graph, {at::scalar_tensor(m, at::kLong), flag(go), at::scalar_tensor(1.0F)});
  };
  const Tensors counted = loop(3, true);
  EXPECT_EQ(counted.at(0).item<float>(), 4);
  EXPECT_TRUE(counted.at(1).equal(floats({1, 2, 4})));
  EXPECT_TRUE(loop(100, true).at(1).equal(floats({1, 2, 4, 7}))) << "its condition ended it";
  const Tensors none = loop(3, false);
  EXPECT_EQ(none.at(0).item<float>(), 1);
  EXPECT_EQ(none.at(1).numel(), 0);
}

TEST(Control, ScanTakesSlicesEitherWay) {
  const Read read(R"(g (float start, float[2, 3] x, float[3] z) => (float end, float[2, 3] sums) {
    end, sums = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [0, 1],
                      scan_output_axes = [1], scan_output_directions = [1],
      body = b (float s, float[2] column, float element) => (float s_out, float[2] sum) {
        s_out = Add (s, element)
        sum = Add (column, s_out)
      } > (start, x, z)
  })");
  const at::Tensor x = at::tensor(std::vector<float>{1, 2, 3, 4, 5, 6}).reshape({2, 3});
  const Tensors found = run(read.graph, {at::scalar_tensor(1.0F), x, floats({10, 20, 30})});
  EXPECT_EQ(found.at(0).item<float>(), 61);
  // s is 31, 51, 61; what the first turn makes comes last.
  const at::Tensor expected =
      at::tensor(std::vector<float>{64, 53, 32, 67, 56, 35}).reshape({2, 3});
  EXPECT_TRUE(found.at(1).equal(expected)) << found.at(1);
}

TEST(Control, ABodyTakesNothingAwayFromWhatIsAroundIt) {
  const Read read(R"(g (int64 m, bool go, float[2] x) => (float[2] y) {
    a = Relu (x)
    y = Loop (m, go, x) <
      body = b (int64 i, bool on, float[2] s) => (bool on_out, float[2] s_out) {
        t = Add (s, a)
        s_out = Neg (t)
        on_out = Identity (on)
      } >
  })");
  const at::Tensor y =
      run(read.graph, {at::scalar_tensor(2, at::kLong), flag(true), floats({1, 3})}).at(0);
  EXPECT_TRUE(y.equal(floats({1, 3})));
}

TEST(Control, WeightsInsideAreParametersAndFollowTheType) {
  const Read read(R"(g (bool c, float[2] x) => (float[2] y) {
    y = If (c) < then_branch = t () => (float[2] o) {
                   w = Constant <value = float[2, 2] {2.0, 0.0, 0.0, 3.0}> ()
                   o = MatMul (x, w) },
                 else_branch = e () => (float[2] p) { p = Neg (x) } >
  })");
  GraphModule net(read.graph);
  ASSERT_EQ(net->parameters().size(), 1);
  EXPECT_TRUE(net->weights().contains("y::then_branch::w"));
  net->to(at::kDouble);
  const at::Tensor y = net->forward({flag(true), at::ones({2}, at::kDouble)}).at(0);
  EXPECT_TRUE(y.equal(at::tensor(std::vector<double>{2, 3})));
}

TEST(Control, AnUnknownOperatorInsideIsNamed) {
  const Read read(R"(g (bool c, float[2] x) => (float[2] y) {
    y = If (c) < then_branch = t () => (float[2] o) { o = Peculiar (x) },
                 else_branch = e () => (float[2] p) { p = Neg (x) } >
  })");
  EXPECT_FALSE(runs(read.graph));
  try {
    GraphModule net(read.graph);
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find("Peculiar"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace parsimony::test
