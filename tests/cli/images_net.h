// A small network for images [3, 32, 32] and ten classes.
#pragma once

#include <string>
#include <utility>

#include "parsimony/base/files.h"
#include "tests/support/fixture.h"

namespace parsimony::test {

/// Two convolutions, a BatchNorm and a Linear with seeded weights, as an ONNX file.
inline void write_images_net(const std::string& path) {
  onnx::ModelProto model = model_of(R"(
    net (float[N,3,32,32] x) => (float[N,10] y)
    {
      a = Conv<pads=[1,1,1,1], strides=[4,4]>(x, W1, B1)
      b = Relu(a)
      c = Conv<pads=[1,1,1,1], strides=[2,2]>(b, W2, B2)
      d = BatchNormalization(c, gamma, beta, mean, var)
      e = Relu(d)
      f = GlobalAveragePool(e)
      g = Flatten(f)
      y = Gemm<transB=1>(g, W3, B3)
    })");
  for (const auto& [name, dims] :
       {std::pair("W1", "12x3x3x3"), std::pair("B1", "12"), std::pair("W2", "16x12x3x3"),
        std::pair("B2", "16"), std::pair("gamma", "16"), std::pair("beta", "16"),
        std::pair("mean", "16"), std::pair("W3", "10x16"), std::pair("B3", "10")}) {
    add_weight(model, name, dims);
  }
  add_weight(model, "var", "16", "float", "positive");
  write_file(path, model.SerializeAsString());
}

}  // namespace parsimony::test
