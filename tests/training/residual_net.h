// The network that tests of recovery prune.
#pragma once

#include <string>
#include <vector>

#include "tests/support/model.h"

namespace parsimony::test {

/// Convolutions of several kinds, a residual sum, a BatchNorm, a Linear.
inline const std::string kResidualNet = R"(
    net (float[N,3,32,32] x) => (float[N,10] y)
    {
      a = Conv<pads=[1,1,1,1], strides=[4,4]>(x, W1, B1)
      b = Relu(a)
      c = Conv<pads=[1,1,1,1]>(b, W2)
      d = BatchNormalization(c, gamma, beta, mean, var)
      e = Relu(d)
      f = Conv<pads=[1,1,1,1], group=2>(e, W3, B3)
      g = Add(f, b)
      h = Relu(g)
      i = GlobalAveragePool(h)
      j = Flatten(i)
      y = Gemm<transB=1>(j, W4, B4)
    })";

inline std::vector<SeededWeight> residual_weights() {
  return {{"W1", "12x3x3x3"},        {"B1", "12"},       {"W2", "16x12x3x3"},
          {"gamma", "16"},           {"beta", "16"},     {"mean", "16"},
          {"var", "16", "positive"}, {"W3", "12x8x3x3"}, {"B3", "12"},
          {"W4", "10x12"},           {"B4", "10"}};
}

}  // namespace parsimony::test
