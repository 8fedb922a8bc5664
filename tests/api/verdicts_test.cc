// Which engine has the last word on what, and that what one of them refused or refuted is not
// written; what is written without a proof.
#include <gtest/gtest.h>
#include <onnx/checker.h>

#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "parsimony/api/engines.h"
#include "parsimony/api/prune_model.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/engines/onnx_runtime.h"
#include "parsimony/onnx_io/model.h"
#include "tests/support/fixture.h"
#include "tests/support/message_of.h"

namespace parsimony::test {
namespace {

/// Answers every input with the same numbers.
class Constant final : public Network {
 public:
  Constant(float number, float otherwise) : number_(number), otherwise_(otherwise) {}

  std::vector<TensorList> run(const std::vector<TensorList>& inputs,
                              const RunOptions& options) override {
    TensorBytes output{"y", DType::kFloat32, {1}, std::vector<std::byte>(sizeof(float))};
    const float number = options.alternate_kernels ? otherwise_ : number_;
    std::memcpy(output.bytes.data(), &number, sizeof number);
    return std::vector<TensorList>(inputs.size(), {output});
  }
  void bind(const TensorList&) override {}
  void compute() override {}
  TensorList outputs() override { return {}; }

 private:
  float number_;
  float otherwise_;
};

/// An engine whose networks answer what they are told to.
struct Puppet final : Engine {
  std::string called = "first";
  std::optional<float> original = 1;  ///< masked; empty: it is refused
  std::optional<float> small = 1;     ///< empty: it is refused
  float original_otherwise = 1;       ///< computed in another way
  Engine* next = nullptr;
  bool last = false;

  std::string name() const override { return called; }
  std::string version() const override { return "1"; }
  bool executes_graphs() const override { return last; }
  Engine* fallback() override { return next; }
  std::unique_ptr<Network> open(const Graph& graph, const OpenOptions&) override {
    const bool is_small = graph.weights[WeightId(0)].dims[1] < 8;
    return answer(is_small ? small : original);
  }
  std::unique_ptr<Network> open_masked(const Graph&, const Plan&, const OpenOptions&) override {
    return answer(original);
  }
  std::unique_ptr<Network> answer(std::optional<float> number) const {
    if (!number) throw UnsupportedError(called + " does not know it");
    return std::make_unique<Constant>(*number, original_otherwise);
  }
};

class Verdicts : public ::testing::Test {
 protected:
  Verdicts() {
    second_.called = "second";
    second_.last = true;
    first_.next = &second_;
  }

  PruneResult prune(const std::string& between = "b = Relu(a)") {
    onnx::ModelProto model = model_of("g (float[1,4] x) => (float[1,2] y) { a = MatMul(x, W1) " +
                                      between + " y = MatMul(b, W2) }");
    add_weight(model, "W1", "4x8");
    add_weight(model, "W2", "8x2");
    write_file(folder_ / "in.onnx", model.SerializeAsString());
    onnx_io::OnnxModel file(folder_ / "in.onnx");
    PruneRequest request = from_shorthand({.ratio = 0.5});
    request.require_proof = require_proof_;
    return prune_model(file, request, {.engine = &first_});
  }

  bool require_proof_ = false;

  TemporaryFolder folder_;
  Puppet first_;
  Puppet second_;
};

TEST_F(Verdicts, TheFirstThatRunsBothProves) {
  second_.original = {};
  EXPECT_EQ(prune().proof.engine, "first");
}

TEST_F(Verdicts, WhatTheFirstDoesNotKnowIsTheSecondsToProve) {
  first_.original = first_.small = {};
  EXPECT_EQ(prune().proof.engine, "second");
  second_.small = 2;
  EXPECT_THROW(prune(), VerificationError);
  second_.original = second_.small = {};
  EXPECT_EQ(prune().proof.not_run, "second does not know it");
}

TEST_F(Verdicts, WhatDrawsRandomNumbersIsNotProven) {
  const auto found = [&](const std::string& mode, const std::string& read) {
    return prune("half = Constant<value_float=0.5>() mode = Constant<value=bool {" + mode +
                 "}>() c, mask = Dropout(a, half, mode) r = RandomNormalLike(a) b = Relu(" + read +
                 ")")
        .proof.not_run;
  };
  EXPECT_EQ(found("1", "c"), "node \"c\" draws random numbers, which differ between runs");
  EXPECT_EQ(found("0", "r"), "node \"r\" draws random numbers, which differ between runs");
  EXPECT_EQ(found("0", "c"), "");
  require_proof_ = true;
  EXPECT_THROW(found("1", "c"), UnsupportedError);
}

TEST_F(Verdicts, WhatAnEngineRefusedIsNotWritten) {
  first_.small = {};
  const std::string words =
      "the original can be opened, but the small network cannot: first does not know it. Nothing "
      "was "
      "written.";
  EXPECT_EQ(message_of<UnsupportedError>([&] { prune(); }), words) << "though another proves it";
  second_.original = second_.small = {};
  EXPECT_EQ(message_of<UnsupportedError>([&] { prune(); }), words) << "nobody else knows it";
  first_.next = nullptr;
  EXPECT_EQ(message_of<UnsupportedError>([&] { prune(); }), words) << "there is nobody else";
}

TEST_F(Verdicts, WhatAnEngineRefutedIsNotWritten) {
  first_.small = 2;
  const std::string words =
      "verification failed in first: output \"y\": difference 1.0e+00, allowed 1.0e-04. Nothing "
      "was changed or written; pass --engine libtorch to verify with libtorch alone.";
  EXPECT_EQ(message_of<VerificationError>([&] { prune(); }), words) << "though another proves it";
  second_.original = second_.small = {};
  EXPECT_EQ(message_of<VerificationError>([&] { prune(); }), words) << "nobody else knows it";
}

/// The original's own kernels are as far apart: no difference, unless another finds one.
TEST_F(Verdicts, RoundingOfTheFirstIsNoRefutation) {
  first_.small = 1.1F;
  first_.original_otherwise = 1.05F;
  EXPECT_EQ(prune().proof.engine, "second");
  second_.original = second_.small = {};
  EXPECT_EQ(prune().proof.engine, "first");
  second_.original = 1;
  second_.small = 1.1F;
  EXPECT_THROW(prune(), VerificationError);
}

/// Only the second tells what is chosen among.
TEST_F(Verdicts, ANetworkThatChoosesIsTheSecondsToJudge) {
  first_.small = 2;
  const std::string rounds = "b = Round(a)";
  EXPECT_EQ(prune(rounds).proof.engine, "second");
  second_.original = second_.small = {};
  const std::string doubt = prune(rounds).proof.not_run;
  EXPECT_NE(doubt.find("outputs differ in first"), std::string::npos) << doubt;
  EXPECT_NE(doubt.find("but: second does not know it"), std::string::npos) << doubt;
}

/// Integers are the same in both networks.
TEST_F(Verdicts, ChoicesAmongSizesAndIntegersLeaveNoDoubt) {
  first_.small = 2;
  for (const std::string between :
       {"s = Shape(a) t = Cast<to = 1>(s) f = Floor(t) i = Cast<to = 7>(f) b = Reshape(a, i)",
        "s = Shape(a) e = Equal(s, s) c = Cast<to = 1>(e) b = Relu(a)", "b = Cast<to = 1>(a)"}) {
    EXPECT_THROW(prune(between), VerificationError) << between;
  }
  EXPECT_EQ(prune("i = Cast<to = 7>(a) b = Cast<to = 1>(i)").proof.engine, "second");
}

std::string complaint_of_checker(const onnx::ModelProto& model) {
  try {
    onnx::checker::check_model(model);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

/// --no-verify: what ONNX's checker and ONNX Runtime's loader take of the original, they take of
/// the small file.
TEST(WithoutAProof, EveryFixtureIsWrittenAsAFileThatLoads) {
  std::unique_ptr<Engine> engine;
  try {
    engine = onnx_runtime_engine(runtime::find_onnx_runtime(), {});
  } catch (const UnsupportedError&) {
    std::cout << "there is no ONNX Runtime: only ONNX's checker looks\n";
  }
  const TemporaryFolder folder;
  int opened = 0;
  for (const Fixture& fixture : all_fixtures()) {
    SCOPED_TRACE(fixture.name);
    const std::string path = folder / (fixture.name + ".onnx");
    write_file(path, fixture.model.SerializeAsString());
    onnx_io::OnnxModel model(path);
    bool opens = engine != nullptr;
    try {
      if (opens) static_cast<void>(model.open(*engine));
    } catch (const UnsupportedError&) {
      opens = false;
    }
    PruneRequest request = from_shorthand({.ratio = 0.5});
    request.mixing = Mixing::kAll;
    request.verify = false;
    for (const std::string& spec : fixture.inputs) request.inputs.push_back(parse_input_spec(spec));
    prune_model(model, request, {.engine = engine.get()});
    model.write(folder / "small.onnx");
    onnx::ModelProto small;
    ASSERT_TRUE(small.ParseFromString(read_file(folder / "small.onnx")));
    const bool is_valid = complaint_of_checker(fixture.model).empty();
    EXPECT_EQ(is_valid ? complaint_of_checker(small) : "", "");
    if (!opens) continue;
    ++opened;
    EXPECT_NO_THROW(static_cast<void>(model.open(*engine)));
  }
  std::cout << opened << " networks opened\n";
}

}  // namespace
}  // namespace parsimony::test
