#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "parsimony/base/errors.h"
#include "parsimony/pruners/members.h"
#include "tests/pruners/network.h"
#include "tests/support/counting_source.h"

namespace parsimony {
namespace {

using test::Builder;
using test::group_of;
using test::member;

float element(int64_t i) { return static_cast<float>((i * 37 + 11) % 101) / 8.0F - 6.0F; }

std::vector<float> elements(int64_t count) {
  std::vector<float> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(element(i));
  return result;
}

/// The definition, element by element.
std::vector<double> reference(const Shape& dims, const Window& window, Power power) {
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(window.axis) + 1; i < dims.size(); ++i) inner *= dims[i];
  std::vector<double> sums(window.end - window.begin);
  for (int64_t i = 0; i < element_count(dims); ++i) {
    const int64_t k = i / inner % dims[window.axis];
    if (k < window.begin || k >= window.end) continue;
    const double x = std::fabs(static_cast<double>(element(i)));
    sums[k - window.begin] += power == Power::kOne ? x : x * x;
  }
  return sums;
}

TEST(SliceNorms, EqualTheDefinitionForEveryLayout) {
  const std::vector<Shape> shapes = {{7, 3, 3, 3}, {5, 40}, {40, 5}, {2, 3, 50}, {3, 1500}, {1, 4}};
  for (const Shape& dims : shapes) {
    Builder b;
    const ValueId w = b.weight("w", elements(element_count(dims)), dims, DType::kFloat32);
    for (int axis = 0; axis < static_cast<int>(dims.size()); ++axis) {
      const int64_t size = dims[axis];
      for (const Window& window : {Window{axis, 0, size}, Window{axis, size / 3, size}}) {
        for (Power power : {Power::kOne, Power::kTwo}) {
          const std::vector<double> found = slice_norms(b.graph.weight_of(w), window, power);
          const std::vector<double> expected = reference(dims, window, power);
          ASSERT_EQ(found.size(), expected.size());
          for (size_t i = 0; i < found.size(); ++i) {
            EXPECT_NEAR(found[i], expected[i], 1e-9 * expected[i])
                << to_string(dims) << ' ' << axis;
          }
        }
      }
    }
  }
}

TEST(SliceNorms, ReadEveryType) {
  Builder b;
  const Window all{0, 0, 2};
  using Norms = std::vector<double>;
  const auto norms = [&](ValueId w) { return slice_norms(b.graph.weight_of(w), all, Power::kTwo); };
  EXPECT_EQ(norms(b.weight<double>("d", {-3, 4}, {2, 1}, DType::kFloat64)), (Norms{9, 16}));
  EXPECT_EQ(norms(b.weight<uint16_t>("h", {0xc200, 0x0001}, {2, 1}, DType::kFloat16)),
            (Norms{9, 0x1p-48}));
  EXPECT_EQ(norms(b.weight<uint16_t>("b", {0xc040, 0x4080}, {2, 1}, DType::kBFloat16)),
            (Norms{9, 16}));
  EXPECT_EQ(norms(b.weight<int8_t>("i", {-128, 4}, {2, 1}, DType::kInt8)), (Norms{16384, 16}));
  EXPECT_EQ(norms(b.weight<uint8_t>("u", {255, 4}, {2, 1}, DType::kUInt8)), (Norms{65025, 16}));
  EXPECT_EQ(norms(b.weight<int32_t>("s", {0x4200, 0x4400}, {2, 1}, DType::kFloat16)),
            (Norms{9, 16}));
  EXPECT_EQ(norms(b.weight<int16_t>("i16", {-300, 4}, {2, 1}, DType::kInt16)), (Norms{90000, 16}));
  EXPECT_EQ(norms(b.weight<int8_t>("i4", {-8, 4}, {2, 1}, DType::kInt4)), (Norms{64, 16}));
  EXPECT_EQ(norms(b.weight<uint8_t>("f8", {0xbc, 0x40}, {2, 1}, DType::kFloat8E4M3FN)),
            (Norms{2.25, 4}));
  EXPECT_THROW(norms(b.weight<int64_t>("n", {1, 2}, {2, 1}, DType::kInt64)), UnsupportedError);
}

TEST(SliceNorms, KeepSmallAndLargeNumbersApart) {
  Builder b;
  const ValueId w = b.weight<float>("w", {1e-30F, 2e-30F, 1e30F, 2e30F}, {4, 1}, DType::kFloat32);
  const std::vector<double> found = slice_norms(b.graph.weight_of(w), {0, 0, 4}, Power::kTwo);
  EXPECT_LT(0, found[0]);
  EXPECT_LT(found[0], found[1]);
  EXPECT_LT(found[2], found[3]);
  EXPECT_FALSE(std::isinf(found[3]));
}

TEST(SumMembers, TakesProducingMatricesOnly) {
  Builder b;
  const ValueId w = b.weight<float>("w", {1, -1, 2, 2}, {2, 2}, DType::kFloat32);
  const ValueId bias = b.weight<float>("bias", {50, 0}, {2}, DType::kFloat32);
  const ValueId next = b.weight<float>("next", {9, 0}, {1, 2}, DType::kFloat32);
  b.node("Gemm", {b.input("x", {1, 2}), w, bias}, "y");
  const Group group =
      group_of({member(w, 0, 0, 2), member(bias, 0, 0, 2), member(next, 0, 1, 2, Role::kIn)}, 2);
  EXPECT_EQ(sum_members(b.graph, group, Power::kOne), (Scores{2, 4}));
  EXPECT_EQ(sum_members(b.graph, group, Power::kTwo), (Scores{2, 8}));
  const Group rest = group_of({group.members[1], group.members[2]}, 2);
  EXPECT_EQ(sum_members(b.graph, rest, Power::kOne), (Scores{59, 0}));
}

TEST(SumMembers, AddsAllIndicesOfAChannelOverAllMembers) {
  Builder b;
  const ValueId w = b.weight<float>("w", {1, 2, 4, 8, 16, 32}, {6, 1}, DType::kFloat32);
  const ValueId v = b.weight<float>("v", {100, 200}, {1, 2}, DType::kFloat32);
  b.node("Gemm", {b.input("x", {1, 1}), w}, "y");
  // Channels {0, 3} and {1, 4}; the indices 2 and 5 belong to others.
  Member strided{w, NodeId(0), 0, Role::kOut, 6, {0, 3, 1, 4}, {0, 2, 4}};
  const Group group = group_of({strided, strided, member(v, 0, 1, 2)}, 2);
  EXPECT_EQ(sum_members(b.graph, group, Power::kOne), (Scores{109, 218}));
}

TEST(SumMembers, ReadsQuantisedWeightsAsTheyAreMeant) {
  Builder b;
  const ValueId w = b.weight<uint8_t>("w", {130, 126, 129, 128}, {2, 2}, DType::kUInt8);
  const ValueId scale = b.weight<float>("scale", {0.5F, 10}, {2}, DType::kFloat32);
  const ValueId zero = b.weight<uint8_t>("zero", {128, 128}, {2}, DType::kUInt8);
  b.node("DequantizeLinear", {w, scale, zero}, "y", {{"axis", int64_t{0}}});
  const Group group = group_of({member(w, 0, 0, 2)}, 2);
  EXPECT_EQ(sum_members(b.graph, group, Power::kOne), (Scores{2, 10}));
}

TEST(SumMembers, ReadsBlocksAsTheyAreMeant) {
  Builder b;
  const ValueId w = b.weight<int8_t>("w", {1, 2, -3, 4, 5, 6, 7, -8}, {4, 2}, DType::kInt4);
  const ValueId scale = b.weight<float>("scale", {1, 10, 100, 1000}, {2, 2}, DType::kFloat32);
  const ValueId zero = b.weight<int8_t>("zero", {0, 0, 0, 1}, {2, 2}, DType::kInt4);
  b.node("DequantizeLinear", {w, scale, zero}, "y",
         {{"axis", int64_t{0}}, {"block_size", int64_t{2}}});
  // The scales are matrices too, but not what makes a channel large.
  const Group columns = group_of({member(w, 0, 1, 2), member(scale, 0, 1, 2)}, 2);
  EXPECT_EQ(sum_members(b.graph, columns, Power::kOne),
            (Scores{1 + 3 + 500 + 700, 20 + 40 + 5000 + 9000}));
}

TEST(SumMembers, ReadsCodesThatShareABytesAsTheyAreMeant) {
  Builder b;
  // Two rows of two blocks of four codes: 8 is zero where no zero point is given.
  const std::vector<uint8_t> codes = {0x98, 0x8a, 0x88, 0x78, 0x88, 0x88, 0x88, 0xf8};
  const ValueId w = b.weight<uint8_t>("w", codes, {2, 2, 2}, DType::kUInt8);
  const ValueId scale = b.weight<float>("scale", {1, 10, 100, 1000}, {2, 2}, DType::kFloat32);
  const auto node = [&](ValueId zero, const std::string& name) {
    const auto at = b.graph.nodes.next_id();
    b.node(
        "MatMulNBits", {b.input("x" + name, {1, 8}), w, scale, zero}, name,
        {{"block_size", int64_t{4}}, {"bits", int64_t{4}}, {"N", int64_t{2}}, {"K", int64_t{8}}});
    b.graph.nodes[at].domain = "com.microsoft";
    Member rows = member(w, 0, 0, 2);
    Member blocks = member(w, 0, 1, 2);
    rows.node = at;
    blocks.node = at;
    return std::pair(group_of({rows}, 2), group_of({blocks}, 2));
  };
  const auto [rows, blocks] = node(kNone, "y");
  EXPECT_EQ(sum_members(b.graph, rows, Power::kOne), (Scores{1 + 2 + 10, 7000}));
  EXPECT_EQ(sum_members(b.graph, blocks, Power::kOne), (Scores{1 + 2, 10 + 7000}));
  EXPECT_EQ(slices_of(b.graph, rows.members[0]).cols(), 8);
  const ValueId zero = b.weight<uint8_t>("zero", {0x98, 0x78}, {2, 1}, DType::kUInt8);
  EXPECT_EQ(sum_members(b.graph, node(zero, "z").first, Power::kOne),
            (Scores{1 + 2 + 10 * (1 + 1 + 1 + 2), 1000 * (1 + 1 + 1 + 8)}));
}

TEST(SumMembers, ReadsTheWeightsOfIntegerProductsAsTheyAreMeant) {
  Builder b;
  const ValueId x = b.input("x", {1, 2});
  const ValueId w = b.weight<uint8_t>("w", {130, 126, 129, 128}, {2, 2}, DType::kUInt8);
  const ValueId scale = b.weight<float>("scale", {0.5F, 10}, {2}, DType::kFloat32);
  const ValueId zero = b.weight<uint8_t>("zero", {128}, {}, DType::kUInt8);
  // Columns (2 1) times 0.5 and (-2 0) times 10.
  b.node("QLinearMatMul", {x, scale, zero, w, scale, zero, scale, zero}, "y");
  EXPECT_EQ(sum_members(b.graph, group_of({member(w, 0, 1, 2)}, 2), Power::kOne),
            (Scores{1.5, 20}));
  Builder c;
  const ValueId v = c.weight<uint8_t>("w", {130, 126, 129, 128}, {2, 2}, DType::kUInt8);
  const ValueId zeros = c.weight<uint8_t>("zero", {128, 129}, {2}, DType::kUInt8);
  c.node("MatMulInteger", {c.input("x", {1, 2}), v, kNone, zeros}, "y");
  EXPECT_EQ(sum_members(c.graph, group_of({member(v, 0, 1, 2)}, 2), Power::kOne), (Scores{3, 4}));
}

TEST(SumMembers, NamesTheNaN) {
  Builder b;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const ValueId w = b.weight<float>("w", {1, 2, nan, 4}, {2, 2}, DType::kFloat32);
  b.node("Gemm", {b.input("x", {1, 2}), w}, "y");
  const Group group = group_of({member(w, 0, 0, 2)}, 2);
  try {
    sum_members(b.graph, group, Power::kOne);
    FAIL();
  } catch (const ModelError& error) {
    EXPECT_STREQ(error.what(),
                 "tensor \"w\": element 2 is not a number; channels with such weights cannot be "
                 "ranked");
  }
}

TEST(SumMembers, ReleasesWhatItHasRead) {
  Builder b;
  const ValueId w = b.floats("w", {2, 2});
  b.node("Gemm", {b.input("x", {1, 2}), w}, "y");
  const auto source = std::make_shared<test::CountingSource>();
  b.graph.source = source;
  sum_members(b.graph, group_of({member(w, 0, 0, 2)}, 2), Power::kOne);
  EXPECT_EQ(source->releases, (std::map<std::string, int>{{"w", 1}}));
}

}  // namespace
}  // namespace parsimony
