// Fourier transforms and complex tensors in TorchScript: channels beside the transform are removed.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <ostream>

#include "tests/torch_io/script_support.h"

namespace parsimony::test {
namespace {

using torch::jit::Module;

/// y from x[2 8 24] by a layer before, whose channels come second, and one behind.
Module between_layers(const std::string& body, int64_t out = 24) {
  at::manual_seed(5);
  return scripted("def forward(self, x):\n    x = torch.linear(x, self.a).transpose(1, 2)\n" +
                      body + "    return torch.linear(y.transpose(1, 2), self.c)\n",
                  {{"a", at::randn({24, 2})},
                   {"c", at::randn({3, out})},
                   {"w", at::randn({24, 5}, at::kComplexFloat)},
                   {"pairs", at::randn({24, 5, 2})},
                   {"m", at::randn({24, 20, 3}, at::kComplexFloat)},
                   {"real", at::randn({24, 5})}});
}

struct Transformed {
  const char* name;
  const char* body;  ///< makes y of x
};

void PrintTo(const Transformed& one, std::ostream* out) { *out << one.name; }

const Transformed kTransformed[] = {
    {"Parameter", "    y = torch.fft_irfft(torch.fft_rfft(x) * self.w, 8)\n"},
    {"Pairs",
     "    y = torch.fft_irfft(torch.fft_rfft(x) * torch.view_as_complex(self.pairs), 8)\n"},
    {"Orthonormal",
     "    y = torch.fft_irfft(torch.fft_rfft(x, norm='ortho') * self.w, None, -1, 'ortho')\n"},
    {"Forward",
     "    y = torch.fft_irfft(torch.fft_rfft(x, None, 2, 'forward') * self.w, x.size(2), 2, "
     "'forward')\n"},
    {"RealFactor", "    y = torch.fft_irfft(torch.fft_rfft(x) * self.real * 2, 8)\n"},
    {"Divided", "    y = torch.fft_irfft(torch.fft_rfft(x) / 3.0, 8)\n"},
    {"SumOfComplex",
     "    f = torch.fft_rfft(x)\n    y = torch.fft_irfft(torch.conj(f * self.w) - f, 8)\n"},
    {"Magnitude", "    f = torch.fft_fft(x)\n    y = f.abs() + torch.real(f) - torch.imag(f)\n"},
    {"ThereAndBack", "    y = torch.real(torch.fft_ifft(torch.fft_fft(x), norm='ortho'))\n"},
    {"AsReal", "    y = torch.view_as_real(torch.fft_fft(x)).sum(3)\n"},
    {"Moved",
     "    f = torch.fft_rfft(x, None, 2).transpose(1, 2).unsqueeze(-1).flatten(2)\n"
     "    f = torch.cat([f[:, :2], f[:, 2:] * 2], 1).permute([0, 2, 1]).contiguous()\n"
     "    y = torch.fft_irfft(f.reshape([2, 24, 5]), 8)\n"},
    {"Polar", "    y = torch.real(torch.polar(torch.relu(x), x) * torch.complex(x, x))\n"},
    {"TwoAxes",
     "    z = x.reshape([2, 24, 4, 2])\n    f = torch.fft_rfft2(z, norm='ortho')\n"
     "    y = torch.fft_irfft2(f * 2, [4, 2], norm='ortho').flatten(2)\n"},
};

class Spectra : public testing::TestWithParam<Transformed> {};

TEST_P(Spectra, HalfOfTheChannelsGo) {
  const Pruned pruned = prune(between_layers(GetParam().body), {at::randn({2, 8, 2})});
  ASSERT_EQ(pruned.pruning.plan.groups.size(), 1U) << pruned.dump;
  EXPECT_LE(pruned.difference, 1e-5) << pruned.dump;
  EXPECT_LE(pruned.misread.value_or(0), 1e-5) << pruned.dump;
  EXPECT_EQ(pruned.small.attr("a").toTensor().sizes(), (Shape{12, 2}));
  EXPECT_EQ(pruned.small.attr("c").toTensor().sizes(), (Shape{3, 12}));
}

INSTANTIATE_TEST_SUITE_P(All, Spectra, testing::ValuesIn(kTransformed),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(ComplexTensors, AParameterIsCutAndStaysComplex) {
  const Pruned pruned =
      prune(between_layers("    y = torch.fft_irfft(torch.fft_rfft(x) * self.w, 8)\n"),
            {at::randn({2, 8, 2})});
  const at::Tensor w = pruned.small.attr("w").toTensor();
  EXPECT_EQ(w.sizes(), (Shape{12, 5}));
  EXPECT_EQ(w.scalar_type(), at::kComplexFloat);
}

/// Modes are mixed over channels and written into zeros, as in a Fourier neural operator.
TEST(ComplexTensors, BothSidesOfAnEinsumGo) {
  const Module net = between_layers(R"(
    f = torch.fft_rfft(x)
    z = torch.zeros([x.size(0), 20, 5], dtype=9)
    z[:, :, :3] = torch.einsum('bim,iom->bom', [f[:, :, :3], self.m])
    y = torch.fft_irfft(z, x.size(2))
)",
                                    20);
  const Pruned pruned = prune(net, {at::randn({2, 8, 2})});
  EXPECT_EQ(pruned.pruning.plan.groups.size(), 2U) << pruned.dump;
  EXPECT_LE(pruned.difference, 1e-5) << pruned.dump;
  EXPECT_EQ(pruned.small.attr("m").toTensor().sizes(), (Shape{12, 10, 3}));
}

/// A Fourier transform along the channels leaves none of them out.
TEST(ComplexTensors, TheTransformedAxisStays) {
  const Pruned pruned = prune(between_layers("    y = torch.real(torch.fft_fft(x, None, 1))\n"),
                              {at::randn({2, 8, 2})});
  EXPECT_TRUE(pruned.pruning.plan.groups.empty()) << pruned.dump;
}

TEST(ComplexTensors, UnknownOperatorsOfThemPinThem) {
  const Pruned pruned = prune(between_layers("    y = torch.real(torch.exp(torch.fft_fft(x)))\n"),
                              {at::randn({2, 8, 2})});
  EXPECT_TRUE(pruned.pruning.plan.groups.empty()) << pruned.dump;
  EXPECT_LE(pruned.difference, 1e-5) << pruned.dump;
}

TEST(ComplexTensors, MayBeResults) {
  at::manual_seed(6);
  const Module net = scripted(
      "def forward(self, x):\n    h = torch.relu(torch.linear(x, self.a))\n"
      "    return torch.fft_rfft(torch.linear(h, self.c))\n",
      {{"a", at::randn({8, 6})}, {"c", at::randn({4, 8})}});
  const Pruned pruned = prune(net, {at::randn({2, 6})});
  EXPECT_EQ(pruned.pruning.plan.groups.size(), 1U) << pruned.dump;
  EXPECT_EQ(pruned.small.attr("a").toTensor().sizes(), (Shape{4, 6}));
}

}  // namespace
}  // namespace parsimony::test
