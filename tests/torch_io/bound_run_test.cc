// What is timed computes what is run otherwise, and leaves the module as it was.
#include "parsimony/torch_io/bound_run.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>

#include "parsimony/base/errors.h"
#include "parsimony/torch_io/script/run.h"

namespace parsimony::test {
namespace {

/// Counts its calls in a buffer and, in training, answers otherwise.
torch::jit::Module counting() {
  torch::jit::Module module("Net");
  module.register_buffer("calls", at::zeros({}));
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(R"(
    def forward(self, x, times: int):
        self.calls.add_(1)
        if self.training:
            return -x
        return x * times + self.calls
  )");
  return module;
}

TEST(BoundRun, CopiesBothWays) {
  const TensorBytes input{"x", DType::kInt16, {2, 1}, {std::byte{1}, {}, std::byte{2}, {}}};
  const auto tensors = torch_io::to_tensors({input});
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_TRUE(tensors[0].equal(at::tensor({1, 2}, at::kShort).reshape({2, 1})));
  const auto run = torch_io::bound_run([&] {
    return std::vector<at::Tensor>{tensors[0].expand({2, 2}), at::zeros({0, 3})};
  });
  EXPECT_TRUE(run->outputs().empty()) << "nothing has run";
  run->run();
  const auto outputs = run->outputs();
  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_EQ(outputs[0].dtype, DType::kInt16);
  EXPECT_EQ(outputs[0].dims, (Shape{2, 2}));
  const int16_t wanted[] = {1, 1, 2, 2};
  ASSERT_EQ(outputs[0].bytes.size(), sizeof wanted);
  EXPECT_EQ(std::memcmp(outputs[0].bytes.data(), wanted, sizeof wanted), 0);
  EXPECT_EQ(outputs[1].dims, (Shape{0, 3}));
  EXPECT_THROW(torch_io::to_tensors({{"x", DType::kString, {1}, {}}}), UnsupportedError);
}

TEST(BoundRun, OfAScriptGoesOnFromItsOwnState) {
  const torch::jit::Module module = counting();
  ASSERT_TRUE(module.is_training());
  const std::vector<at::Tensor> inputs = {at::full({2}, 10), at::tensor(3)};
  const at::Tensor calls = module.attr("calls").toTensor();
  {
    const auto compute = torch_io::bound_script(module, inputs);
    EXPECT_EQ(compute()[0][0].item<double>(), 31);
    EXPECT_EQ(compute()[0][0].item<double>(), 32);
  }
  EXPECT_TRUE(module.is_training());
  EXPECT_EQ(calls.item<double>(), 0);
  EXPECT_EQ(torch_io::script_run(module)(inputs)[0][0].item<double>(), 31);
}

}  // namespace
}  // namespace parsimony::test
