// What experts contribute, against gates and experts written out, on both engines.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/api/engines.h"
#include "parsimony/api/measure.h"
#include "parsimony/base/errors.h"
#include "parsimony/engines/onnx_runtime.h"
#include "parsimony/pruners/criterion.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/statistics/batches.h"
#include "tests/support/model.h"

namespace parsimony::training {
namespace {

using at::Tensor;
using test::SeededWeight;
using test::TextModel;
using WeightOf = std::function<Tensor(const char*)>;

/// What is routed to which expert, and what all experts compute of all tokens.
struct Mixture {
  Tensor gates;                 ///< [tokens, experts]
  std::vector<Tensor> outputs;  ///< [tokens, width] each
};

struct ExpertNetwork {
  const char* name;
  const char* text;
  std::vector<SeededWeight> weights;
  std::vector<Mixture> (*mixtures)(const WeightOf& w, const Tensor& x);
};

/// Returns the shares of the k best experts; `normalised` shares sum to 1.
Tensor best(const Tensor& scores, int64_t k, bool normalised) {
  const auto [chosen, which] = at::topk(scores, k, -1);
  const Tensor shares = normalised ? chosen / chosen.sum(-1, true) : chosen;
  return at::zeros_like(scores).scatter(-1, which, shares);
}

using OneExpert = std::function<Tensor(int64_t)>;
Mixture mixture(Tensor gates, const OneExpert& expert) {
  Mixture result{std::move(gates), {}};
  for (int64_t e = 0; e < result.gates.size(1); ++e) result.outputs.push_back(expert(e));
  return result;
}

Tensor summed(const Mixture& of) {
  Tensor sum = at::zeros_like(of.outputs[0]);
  for (int64_t e = 0; e < of.gates.size(1); ++e) {
    sum = sum + of.gates.select(1, e).unsqueeze(1) * of.outputs[e];
  }
  return sum;
}

Mixture two_layers(const WeightOf& w, const Tensor& x, Tensor gates) {
  return mixture(std::move(gates),
                 [&](int64_t e) { return x.matmul(w("U")[e]).tanh().matmul(w("D")[e]); });
}

/// Rows of two codes of 4 bits in a byte, the lower one first.
Tensor decoded(const Tensor& codes, const Tensor& scales) {
  const Tensor pairs = at::stack({codes.remainder(16), codes.div(16, "floor")}, -1);
  return (pairs.flatten(-2) - 8) * scales.unsqueeze(-1);
}

const ExpertNetwork kNetworks[] = {
    {"Fused",
     R"(<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        net (float[N,5] x) => (float[N,4] y) {
          a = MatMul(x, W0)
          r = MatMul(x, R)
          m = com.microsoft.MoE<k = 2, activation_type = "silu">(a, r, U1, c1, U2, c2)
          s = Add(a, m)
          q = MatMul(s, Q)
          n = com.microsoft.MoE<k = 2, activation_type = "silu", normalize_routing_weights = 1>(s, q, V1, d1, V2, d2)
          y = MatMul(n, W) })",
     {{"W0", "5x8"},
      {"R", "5x6"},
      {"Q", "8x6"},
      {"U1", "6x3x8"},
      {"c1", "6x3"},
      {"U2", "6x8x3"},
      {"c2", "6x8"},
      {"V1", "6x3x8"},
      {"d1", "6x3"},
      {"V2", "6x8x3"},
      {"d2", "6x8"},
      {"W", "8x4"}},
     [](const WeightOf& w, const Tensor& x) {
       const Tensor a = x.matmul(w("W0"));
       const auto fused = [&](const Tensor& in, const Tensor& gates, const char* const(&of)[4]) {
         return mixture(gates, [&](int64_t e) {
           const Tensor h = at::silu(in.matmul(w(of[0])[e].t()) + w(of[1])[e]);
           return h.matmul(w(of[2])[e].t()) + w(of[3])[e];
         });
       };
       const Tensor shares = best(x.matmul(w("R")).softmax(-1), 2, false);
       const Mixture first = fused(a, shares, {"U1", "c1", "U2", "c2"});
       const Tensor s = a + summed(first);
       const Tensor next = best(s.matmul(w("Q")).softmax(-1), 2, true);
       return std::vector{first, fused(s, next, {"V1", "d1", "V2", "d2"})};
     }},
    {"FusedOfFourBits",
     R"(<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        net (float[N,5] x) => (float[N,4] y) {
          a = MatMul(x, W0)
          r = MatMul(x, R)
          m = com.microsoft.QMoE<k = 2, activation_type = "silu", expert_weight_bits = 4, weights_prepacked = 0>(a, r, Q1, s1, c1, Q2, s2)
          y = MatMul(m, W) })",
     {{"W0", "5x8"},
      {"R", "5x6"},
      {"Q1", "6x12x4", "", "uint8"},
      {"s1", "6x12", "positive"},
      {"c1", "6x12"},
      {"Q2", "6x8x6", "", "uint8"},
      {"s2", "6x8", "positive"},
      {"W", "8x4"}},
     [](const WeightOf& w, const Tensor& x) {
       const Tensor a = x.matmul(w("W0"));
       const Tensor U1 = decoded(w("Q1"), w("s1"));
       const Tensor U2 = decoded(w("Q2"), w("s2"));
       const Tensor gates = best(x.matmul(w("R")).softmax(-1), 2, true);
       return std::vector{mixture(gates, [&](int64_t e) {
         return at::silu(a.matmul(U1[e].t()) + w("c1")[e]).matmul(U2[e].t());
       })};
     }},
    {"Stacked",
     R"(<ir_version: 8, opset_import: ["" : 17]>
        net (float[N,5] x) => (float[N,3] y)
        <int64[1] k = {2}, int64[1] zero = {0}, int64[1] two = {2}> {
          l = MatMul(x, R)
          v, at = TopK<axis = -1>(l, k)
          p = Softmax<axis = -1>(v)
          z = Sub(l, l)
          g0 = ScatterElements<axis = 1>(z, at, p)
          g1 = Transpose<perm = [1, 0]>(g0)
          g = Unsqueeze(g1, two)
          h = MatMul(x, U)
          a = Tanh(h)
          o = MatMul(a, D)
          w = Mul(o, g)
          s = ReduceSum<keepdims = 0>(w, zero)
          y = MatMul(s, W) })",
     {{"R", "5x6"}, {"U", "6x5x4"}, {"D", "6x4x5"}, {"W", "5x3"}},
     [](const WeightOf& w, const Tensor& x) {
       const auto [v, at] = at::topk(x.matmul(w("R")), 2, -1);
       const Tensor gates = at::zeros({x.size(0), 6}, x.options());
       return std::vector{two_layers(w, x, gates.scatter(-1, at, v.softmax(-1)))};
     }},
    {"StackedAndContractedWithTheGates",
     R"(<ir_version: 8, opset_import: ["" : 17]>
        net (float[N,5] x) => (float[N,3] y)
        <int64[1] k = {2}, int64[1] one = {1}> {
          l = MatMul(x, R)
          v, at = TopK<axis = -1>(l, k)
          p = Softmax<axis = -1>(v)
          z = Sub(l, l)
          g0 = ScatterElements<axis = 1>(z, at, p)
          g = Unsqueeze(g0, one)
          h = MatMul(x, U)
          a = Tanh(h)
          o0 = MatMul(a, D)
          o = Transpose<perm = [1, 0, 2]>(o0)
          w = MatMul(g, o)
          s = Squeeze(w, one)
          y = MatMul(s, W) })",
     {{"R", "5x6"}, {"U", "6x5x4"}, {"D", "6x4x5"}, {"W", "5x3"}},
     [](const WeightOf& w, const Tensor& x) {
       const auto [v, at] = at::topk(x.matmul(w("R")), 2, -1);
       const Tensor gates = at::zeros({x.size(0), 6}, x.options());
       return std::vector{two_layers(w, x, gates.scatter(-1, at, v.softmax(-1)))};
     }},
    {"StackedInEightBits",
     R"(<ir_version: 8, opset_import: ["" : 17]>
        net (float[N,5] x) => (float[N,3] y)
        <int64 depth = {6}, float[2] values = {0.0, 1.0}, int64[1] two = {2}, int64[1] zero = {0},
         float scale = {0.01}> {
          l = MatMul(x, R)
          at = ArgMax<axis = 1, keepdims = 0>(l)
          m = OneHot<axis = 0>(at, depth, values)
          g = Unsqueeze(m, two)
          u = DequantizeLinear(U, scale)
          h = MatMul(x, u)
          w = Mul(h, g)
          s = ReduceSum<keepdims = 0>(w, zero)
          a = Relu(s)
          y = MatMul(a, W) })",
     {{"R", "5x6"}, {"U", "6x5x4", "", "int8"}, {"W", "4x3"}},
     [](const WeightOf& w, const Tensor& x) {
       const Tensor gates = best(x.matmul(w("R")), 1, true).ne(0).to(at::kDouble);
       return std::vector{mixture(gates, [&](int64_t e) { return x.matmul(0.01 * w("U")[e]); })};
     }},
    // No token is routed to the first expert.
    {"Gathered",
     R"(<ir_version: 8, opset_import: ["" : 17]>
        net (float[N,5] x) => (float[N,3] y)
        <float[6] rb = {-100.0, 0.0, 0.5, -0.5, 0.0, 0.25}, int64[1] k = {2}, int64[1] one = {1},
         int64[1] two = {2}> {
          l0 = MatMul(x, R)
          l = Add(l0, rb)
          p = Softmax<axis = -1>(l)
          v, at = TopK<axis = -1>(p, k)
          u = Gather<axis = 0>(U, at)
          d = Gather<axis = 0>(D, at)
          x2 = Unsqueeze(x, one)
          x3 = Unsqueeze(x2, two)
          h = MatMul(x3, u)
          a = Tanh(h)
          o0 = MatMul(a, d)
          o = Squeeze(o0, two)
          g = Unsqueeze(v, two)
          w = Mul(o, g)
          s = ReduceSum<keepdims = 0>(w, one)
          y = MatMul(s, W) })",
     {{"R", "5x6"}, {"U", "6x5x4"}, {"D", "6x4x5"}, {"W", "5x3"}},
     [](const WeightOf& w, const Tensor& x) {
       const Tensor scores = (x.matmul(w("R")) + w("rb")).softmax(-1);
       return std::vector{two_layers(w, x, best(scores, 2, false))};
     }},
    // One place after the other, added to what bypasses the layer; a score of its own chooses.
    {"GatheredPlaceByPlace",
     R"(<ir_version: 8, opset_import: ["" : 17]>
        net (float[N,5] x) => (float[N,3] y)
        <int64[1] k = {2}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}> {
          l = MatMul(x, R)
          p = Sigmoid(l)
          c = Add(p, rb)
          v, at = TopK<axis = -1>(c, k)
          g = GatherElements<axis = 1>(p, at)
          x2 = Unsqueeze(x, one)
          at0 = Slice(at, zero, one, one)
          g0 = Slice(g, zero, one, one)
          i0 = Squeeze(at0, one)
          u0 = Gather<axis = 0>(U, i0)
          d0 = Gather<axis = 0>(D, i0)
          h0 = MatMul(x2, u0)
          a0 = Tanh(h0)
          e0 = MatMul(a0, d0)
          o0 = Squeeze(e0, one)
          w0 = Mul(o0, g0)
          s0 = Add(x, w0)
          at1 = Slice(at, one, two, one)
          g1 = Slice(g, one, two, one)
          i1 = Squeeze(at1, one)
          u1 = Gather<axis = 0>(U, i1)
          d1 = Gather<axis = 0>(D, i1)
          h1 = MatMul(x2, u1)
          a1 = Tanh(h1)
          e1 = MatMul(a1, d1)
          o1 = Squeeze(e1, one)
          w1 = Mul(o1, g1)
          s1 = Add(s0, w1)
          y = MatMul(s1, W) })",
     {{"R", "5x6"}, {"rb", "6"}, {"U", "6x5x4"}, {"D", "6x4x5"}, {"W", "5x3"}},
     [](const WeightOf& w, const Tensor& x) {
       const Tensor scores = x.matmul(w("R")).sigmoid();
       const Tensor at = std::get<1>(at::topk(scores + w("rb"), 2, -1));
       const Tensor gates = at::zeros_like(scores).scatter(-1, at, scores.gather(-1, at));
       return std::vector{two_layers(w, x, gates)};
     }},
    {"OfALoop",
     R"(<ir_version: 8, opset_import: ["" : 18]>
        net (float[N,5] x) => (float[N,3] y)
        <int64[1] k = {2}, int64[1] one = {1}, int64[1] minus = {-1}, float zero = {0.0}, int64 i0 = {0},
         int64 i1 = {1}, int64 i2 = {2}> {
          l = MatMul(x, R)
          v, at = TopK<axis = -1>(l, k)
          p = Softmax<axis = -1>(v)
          y0 = Mul(x, zero)
          m0 = Equal(at, i0)
          f0 = Cast<to = 1>(m0)
          t0 = Mul(f0, p)
          g0 = ReduceSum(t0, one)
          h0 = MatMul(x, U0)
          a0 = Tanh(h0)
          o0 = MatMul(a0, D0)
          w0 = Mul(o0, g0)
          y1 = Add(y0, w0)
          m1 = Equal(at, i1)
          f1 = Cast<to = 1>(m1)
          t1 = Mul(f1, p)
          g1 = ReduceSum(t1, one)
          h1 = MatMul(x, U1)
          a1 = Tanh(h1)
          o1 = MatMul(a1, D1)
          w1 = Mul(g1, o1)
          y2 = Add(w1, y1)
          m2 = Equal(at, i2)
          f2 = Cast<to = 1>(m2)
          t2 = Mul(f2, p)
          s2 = ReduceSum<keepdims = 0>(t2, one)
          n2 = NonZero(s2)
          r2 = Transpose<perm = [1, 0]>(n2)
          x2 = GatherND(x, r2)
          q2 = GatherND(s2, r2)
          g2 = Unsqueeze(q2, minus)
          h2 = MatMul(x2, U2)
          a2 = Tanh(h2)
          o2 = MatMul(a2, D2)
          w2 = Mul(o2, g2)
          y3 = ScatterND<reduction = "add">(y2, r2, w2)
          y = MatMul(y3, W) })",
     {{"R", "5x3"},
      {"U0", "5x4"},
      {"D0", "4x5"},
      {"U1", "5x3"},
      {"D1", "3x5"},
      {"U2", "5x4"},
      {"D2", "4x5"},
      {"W", "5x3"}},
     [](const WeightOf& w, const Tensor& x) {
       const auto [v, at] = at::topk(x.matmul(w("R")), 2, -1);
       const Tensor gates = at::zeros({x.size(0), 3}, x.options());
       return std::vector{mixture(gates.scatter(-1, at, v.softmax(-1)), [&](int64_t e) {
         const std::string number = std::to_string(e);
         return x.matmul(w(("U" + number).c_str())).tanh().matmul(w(("D" + number).c_str()));
       })};
     }},
};

class Reap : public ::testing::TestWithParam<std::tuple<const char*, ExpertNetwork>> {};

TEST_P(Reap, IsTheMeanNormOfWhatExpertsAddToTheirTokens) {
  const auto& [name, network] = GetParam();
  std::unique_ptr<Engine> engine = std::make_unique<torch_io::TorchEngine>();
  if (name == std::string("onnxruntime")) {
    try {
      engine = onnx_runtime_engine(runtime::find_onnx_runtime(), {});
    } catch (const UnsupportedError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  TextModel model(network.text, network.weights);
  Graph& graph = model.graph();
  PruneRequest request;
  request.granularity = Granularity::kExpert;
  const Analysis analysis = analyse(graph, request);
  const Tensor x = at::randn({70, 5}, at::detail::createCPUGenerator(7));
  const Runs runs = [&](int64_t, const SeeRun& see) {
    for (const auto& [first, count] : {std::pair(0, 40), {40, 30}}) {
      see(values_of({x.narrow(0, first, count)}), count);
    }
  };
  const Needs needs{.channels = {Measure::kContribution}, .criteria = {"reap"}};
  const Statistics statistics =
      measure_on(*engine, graph, analysis.facts, analysis.coupling, needs, runs);
  const WeightOf weight = [&](const std::string& wanted) {
    for (const Weight& each : graph.weights) {
      if (each.name == wanted) return torch_io::to_tensor(each).to(at::kDouble);
    }
    throw std::runtime_error(wanted);
  };
  const std::vector<Mixture> expected = network.mixtures(weight, x.to(at::kDouble));
  size_t found = 0;
  for (const Group& group : analysis.coupling.groups) {
    if (!has_experts(group)) continue;
    ASSERT_LT(found, expected.size());
    const Mixture& of = expected[found++];
    const Scores scores = find_criterion("reap").score(graph, group, {.statistics = &statistics});
    ASSERT_EQ(std::ssize(scores), of.gates.size(1));
    for (size_t e = 0; e < scores.size(); ++e) {
      const Tensor gates = of.gates.select(1, static_cast<int64_t>(e));
      const Tensor norms = (gates * of.outputs[e].norm(2, {1})).masked_select(gates.ne(0));
      const double mean = norms.numel() == 0 ? 0 : norms.mean().item<double>();
      EXPECT_NEAR(scores[e], mean, 1e-5 * (1 + mean)) << "group " << group.id << ", expert " << e;
    }
  }
  EXPECT_EQ(found, expected.size());
}

INSTANTIATE_TEST_SUITE_P(Engines, Reap,
                         ::testing::Combine(::testing::Values("libtorch", "onnxruntime"),
                                            ::testing::ValuesIn(kNetworks)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) +
                                  std::get<1>(test.param).name;
                         });

}  // namespace
}  // namespace parsimony::training
