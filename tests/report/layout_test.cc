#include "parsimony/report/network/layout.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace parsimony::test {
namespace {

/// Boxes of one height that may all join their source.
LayoutRequest boxes(int count, std::vector<std::pair<int, int>> lines, bool joins = false) {
  LayoutRequest request;
  request.heights.assign(count, 20);
  request.joins.assign(count, joins);
  request.lines = std::move(lines);
  return request;
}

bool overlap(const Layout& layout, const LayoutRequest& request, int a, int b) {
  const Layout::Place& one = layout.boxes[a];
  const Layout::Place& other = layout.boxes[b];
  return one.x < other.x + kBoxWidth && other.x < one.x + kBoxWidth &&
         one.y < other.y + request.heights[b] && other.y < one.y + request.heights[a];
}

/// What every layout promises.
void expect_sound(const LayoutRequest& request) {
  const Layout layout = lay_out(request);
  ASSERT_EQ(layout.boxes.size(), request.heights.size());
  ASSERT_EQ(layout.via.size(), request.lines.size());
  for (int a = 0; a < std::ssize(layout.boxes); ++a) {
    const Layout::Place& place = layout.boxes[a];
    EXPECT_GE(place.x, 0);
    EXPECT_GE(place.y, layout.layers[place.layer].top);
    EXPECT_LE(place.y + request.heights[a], layout.layers[place.layer].bottom);
    for (int b = 0; b < a; ++b) EXPECT_FALSE(overlap(layout, request, a, b)) << a << " on " << b;
  }
  for (size_t i = 0; i < request.lines.size(); ++i) {
    const auto [from, to] = request.lines[i];
    const Layout::Place& end = layout.boxes[to];
    EXPECT_LE(layout.boxes[from].y + request.heights[from], end.y) << from << " to " << to;
    if (layout.via[i] < 0) continue;
    const LayoutBend& last = layout.bends[layout.via[i]];
    EXPECT_EQ(last.layer + 1, end.layer);
    int layer = last.layer;
    for (int bend = last.above; bend >= 0; bend = layout.bends[bend].above) {
      EXPECT_EQ(layout.bends[bend].layer, --layer);
    }
    EXPECT_EQ(layout.boxes[last.box].layer, layer - 1);
  }
}

TEST(Layout, OfNothing) { EXPECT_TRUE(lay_out({}).boxes.empty()); }

TEST(Layout, IsSound) {
  expect_sound(boxes(1, {}));
  expect_sound(boxes(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}));
  expect_sound(boxes(6, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {0, 4}, {1, 5}}));
  expect_sound(boxes(7, {{0, 2}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {2, 5}, {1, 5}, {5, 6}}, true));
}

TEST(Layout, AChainOfBoxesThatJoinIsOneStack) {
  const LayoutRequest request = boxes(4, {{0, 1}, {1, 2}, {2, 3}}, true);
  const Layout layout = lay_out(request);
  EXPECT_EQ(layout.layers.size(), 1U);
  EXPECT_EQ(layout.boxes[3].y, 60);
  EXPECT_TRUE(layout.boxes[3].joined);
  EXPECT_FALSE(layout.boxes[0].joined);
}

TEST(Layout, BoxesWithAnotherLineDoNotJoin) {
  const Layout layout = lay_out(boxes(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}, true));
  for (const Layout::Place& place : layout.boxes) EXPECT_FALSE(place.joined);
  EXPECT_EQ(layout.layers.size(), 3U);
}

TEST(Layout, TheWayThroughResidualBlocksIsStraight) {
  std::vector<std::pair<int, int>> lines;
  int from = 0;
  for (int block = 0; block < 8; ++block, from += 4) {
    for (int i = 0; i < 4; ++i) lines.emplace_back(from + i, from + i + 1);
    lines.emplace_back(from, from + 4);
  }
  const Layout layout = lay_out(boxes(from + 1, lines));
  for (const Layout::Place& place : layout.boxes) EXPECT_NEAR(place.x, layout.boxes[0].x, 1);
  for (const LayoutBend& bend : layout.bends) {
    if (bend.above < 0) continue;
    EXPECT_EQ(bend.x, layout.bends[bend.above].x);
  }
}

TEST(Layout, WhatDependsOnNoInputStandsWhereItIsRead) {
  LayoutRequest request = boxes(6, {{0, 3}, {1, 2}, {3, 4}, {2, 5}, {4, 5}});
  request.inputs = {0};
  const Layout layout = lay_out(request);
  EXPECT_EQ(layout.boxes[5].layer, 3);
  EXPECT_EQ(layout.boxes[2].layer, 2);
  EXPECT_EQ(layout.boxes[1].layer, 1);
  EXPECT_EQ(layout.boxes[0].layer, 0);
  expect_sound(request);
}

TEST(Layout, BoxesWithoutLinesDoNotWidenThePicture) {
  const LayoutRequest request = boxes(40, {{0, 1}, {1, 2}});
  const Layout layout = lay_out(request);
  for (int b = 3; b < 40; ++b) {
    EXPECT_GT(layout.boxes[b].layer, layout.boxes[2].layer);
    EXPECT_LT(layout.boxes[b].x, 7 * kBoxWidth);
  }
  expect_sound(request);
}

TEST(Layout, LinesOfABoxShareTheirWay) {
  constexpr int kDense = 40;
  std::vector<std::pair<int, int>> lines;
  for (int a = 0; a < kDense; ++a) {
    for (int b = a + 1; b < kDense; ++b) lines.emplace_back(a, b);
  }
  const Layout layout = lay_out(boxes(kDense, lines));
  // Line by line it would be a bend for each of almost 10,000 layers passed.
  EXPECT_EQ(layout.bends.size(), (kDense - 2) * (kDense - 1) / 2U);
  expect_sound(boxes(kDense, lines));
}

TEST(Layout, LinesDoNotCrossWithoutNeed) {
  // Two chains whose boxes come in turns, and in the other order halfway down.
  const LayoutRequest request = boxes(6, {{0, 2}, {1, 3}, {2, 5}, {3, 4}});
  const Layout layout = lay_out(request);
  const auto left = [&](int a, int b) { return layout.boxes[a].x < layout.boxes[b].x; };
  EXPECT_EQ(left(0, 1), left(2, 3));
  EXPECT_EQ(left(2, 3), left(5, 4));
}

TEST(Layout, HostileGraphsHaveFewBends) {
  constexpr int kBoxes = 3000;
  std::vector<std::pair<int, int>> lines;
  for (int b = 0; b + 1 < kBoxes; ++b) {
    lines.emplace_back(b, b + 1);
    lines.emplace_back(b, kBoxes - 1);
  }
  const Layout layout = lay_out(boxes(kBoxes, lines));
  EXPECT_LE(layout.bends.size(), 100'000U);
  EXPECT_TRUE(std::ranges::any_of(layout.via, [](int via) { return via >= 0; }));
}

}  // namespace
}  // namespace parsimony::test
