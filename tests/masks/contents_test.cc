// Zeros and constants that are followed through a network: what a slice holds for any input.
#include <gtest/gtest.h>

#include "parsimony/masks/slice_values.h"
#include "tests/masks/small_net.h"

namespace parsimony::test {
namespace {

/// A label per index: '0' zero, 'c' constant, '~' varies.
std::string text_of(const std::vector<SliceValue>& slices) {
  std::string text;
  for (const SliceValue content : slices) {
    text += content == SliceValue::kZero ? '0' : content == SliceValue::kConstant ? 'c' : '~';
  }
  return text;
}

class ContentsNet : public SmallNet {
 public:
  /// A weight of three channels, of which the second is zero.
  auto gap(const std::string& name, Shape dims, size_t axis) {
    std::vector<float> elements(static_cast<size_t>(element_count(dims)), 1);
    int64_t inner = 1;
    for (size_t d = axis + 1; d < dims.size(); ++d) inner *= dims[d];
    for (size_t i = 0; i < elements.size(); ++i) {
      if (static_cast<int64_t>(i) / inner % dims[axis] == 1) elements[i] = 0;
    }
    return weight(name, elements, std::move(dims), DType::kFloat32);
  }

  /// Three channels, of which the second is always zero.
  auto gappy() { return node("MatMul", {x({2, 6}), gap("W", {6, 3}, 1)}, "a"); }

  template <typename Id>
  std::string contents(Id value, size_t dim, const std::vector<ElementMask>& masks = {}) {
    output(value);
    finish(graph);
    return text_of(propagate_slice_values(graph, infer(graph), masks)[value].at(dim));
  }
};

TEST(SliceValues, WeightsAreZeroOrConstant) {
  ContentsNet n;
  const auto w = n.gap("W", {6, 3}, 1);
  n.node("MatMul", {n.x({2, 6}), w}, "a");
  EXPECT_EQ(n.contents(w, 1), "c0c");
}

TEST(SliceValues, AnInputVaries) {
  ContentsNet n;
  EXPECT_EQ(n.contents(n.node("Relu", {n.x({2, 3})}, "r"), 1), "~~~");
}

TEST(SliceValues, AZeroColumnMakesAZeroChannel) {
  ContentsNet n;
  EXPECT_EQ(n.contents(n.gappy(), 1), "~0~");
}

TEST(SliceValues, MasksAreZeros) {
  ContentsNet n;
  const auto a = n.linear(n.x({2, 2}), "1", {2, 3});
  EXPECT_EQ(n.contents(a, 1, {{"W1", {2, 3}, {0, 1, 1, 0, 1, 1}}}), "0~~");
}

TEST(SliceValues, ABiasMakesAZeroChannelConstant) {
  ContentsNet n;
  const auto w = n.gap("W", {6, 3}, 1);
  EXPECT_EQ(n.contents(n.node("Gemm", {n.x({2, 6}), w, n.floats("b", {3})}, "a"), 1), "~c~");
}

TEST(SliceValues, ZeroStaysZeroBehindReluAndNotBehindSigmoid) {
  ContentsNet n;
  EXPECT_EQ(n.contents(n.node("Relu", {n.gappy()}, "r"), 1), "~0~");
  ContentsNet m;
  EXPECT_EQ(m.contents(m.node("Sigmoid", {m.gappy()}, "s"), 1), "~c~");
}

TEST(SliceValues, AnAddIsZeroWhereAllItsTermsAre) {
  ContentsNet n;
  const auto a = n.gappy();
  EXPECT_EQ(n.contents(n.node("Add", {a, n.gap("c", {3}, 0)}, "s"), 1), "~0~");
  ContentsNet m;
  EXPECT_EQ(m.contents(m.node("Add", {m.gappy(), m.floats("c", {3})}, "s"), 1), "~c~");
}

TEST(SliceValues, AProductIsZeroWhereAFactorIs) {
  ContentsNet n;
  EXPECT_EQ(n.contents(n.node("Mul", {n.x({2, 3}), n.gap("c", {3}, 0)}, "m"), 1), "~0~");
}

TEST(SliceValues, AQuotientOfZeroIsZeroUnlessItIsDividedByZero) {
  ContentsNet n;
  EXPECT_EQ(n.contents(n.node("Div", {n.gappy(), n.floats("d", {3})}, "q"), 1), "~0~");
  ContentsNet m;
  EXPECT_EQ(m.contents(m.node("Div", {m.gappy(), m.gap("d", {3}, 0)}, "q"), 1), "~c~");
}

TEST(SliceValues, AContractionOverZerosIsZeroAndMixesTheRest) {
  ContentsNet n;
  const auto y = n.node("MatMul", {n.gappy(), n.gap("V", {3, 3}, 1)}, "y");
  EXPECT_EQ(n.contents(y, 1), "~0~");
}

TEST(SliceValues, AZeroBiasStopsNoProduct) {
  ContentsNet n;
  const auto zero = n.weight("b", std::vector<float>{0, 0, 0}, {3}, DType::kFloat32);
  const auto y = n.node("Conv", {n.x({1, 2, 2, 2}), n.floats("W", {3, 2, 1, 1}), zero}, "y");
  EXPECT_EQ(n.contents(y, 1), "~~~");
  EXPECT_EQ(n.contents(y, 2), "~~");
}

TEST(SliceValues, ASoftmaxMixesWhatVaries) {
  ContentsNet n;
  EXPECT_EQ(n.contents(n.node("Softmax", {n.gappy()}, "s"), 1), "~~~");
}

TEST(SliceValues, PiecesKeepTheirContents) {
  ContentsNet n;
  const auto c = n.node("Concat", {n.gappy(), n.floats("t", {2, 2})}, "c", {{"axis", int64_t{1}}});
  EXPECT_EQ(n.contents(n.slice(c, "s", 1, 4), 1), "0~c");
}

TEST(SliceValues, ProductsOfAxesAreFollowedByCoordinate) {
  ContentsNet n;
  const auto a = n.conv(n.x({1, 2, 2, 2}), "1", {1, 2, 1, 1});
  const auto w = n.gap("V", {3, 1, 1, 1}, 0);
  const auto flat = n.node("Flatten", {n.node("Conv", {a, w}, "b")}, "f");
  EXPECT_EQ(n.contents(flat, 1), "~~~~0000~~~~");
}

TEST(SliceValues, ANormalisationWithoutGainIsItsBias) {
  ContentsNet n;
  const auto w = n.gap("W", {3, 2, 1, 1}, 0);
  const auto a = n.node("Conv", {n.x({1, 2, 2, 2}), w}, "a");
  const auto b = n.node("BatchNormalization",
                        {n.node("Sigmoid", {a}, "s"), n.gap("gamma", {3}, 0), n.floats("beta", {3}),
                         n.floats("mean", {3}), n.floats("var", {3})},
                        "b");
  EXPECT_EQ(n.contents(b, 1), "~c~");
}

TEST(SliceValues, PaddingIsZeroOrConstant) {
  ContentsNet n;
  EXPECT_EQ(n.contents(n.node("Pad", {n.gappy(), n.integers("p", {0, 1, 0, 1})}, "p1"), 1),
            "0~0~0");
  ContentsNet m;
  const auto one = m.weight("v", std::vector<float>{1}, {}, DType::kFloat32);
  const auto p = m.node("Pad", {m.gappy(), m.integers("p", {0, 1, 0, 1}), one}, "p1");
  EXPECT_EQ(m.contents(p, 1), "c~c~c");  // a zero that is moved is known as a constant
}

TEST(SliceValues, NothingIsKnownBehindAnUnknownOperatorOrARecurrence) {
  ContentsNet n;
  const auto y = n.value("y");
  n.add("RNN", {n.x({5, 2, 6}), n.gap("W", {1, 3, 6}, 1), n.gap("R", {1, 3, 3}, 1)}, {y},
        {{"hidden_size", int64_t{3}}});
  EXPECT_EQ(n.contents(y, 3), "~~~");
}

}  // namespace
}  // namespace parsimony::test
