// Lays out the boxes of a layered picture: lines lead downwards, boxes of a layer are in a row.
#pragma once

#include <utility>
#include <vector>

namespace parsimony {

/// All boxes have one width, kBoxWidth.
inline constexpr int kBoxWidth = 172;

struct LayoutRequest {
  std::vector<int> heights;  ///< per box
  /// Per box: whether it may be directly below its source; it is if neither has another line.
  std::vector<bool> joins;
  std::vector<std::pair<int, int>> lines;  ///< from a box to a later one
  /// Boxes at which the picture begins: its inputs. Boxes not reachable from them, such as those
  /// that depend on weights only, are placed close to their readers.
  std::vector<int> inputs = {};
};

/// A bend of the way that all lines of a box share; each line leaves it at the layer above its end.
struct LayoutBend {
  int x = 0;  ///< its middle
  int layer = 0;
  int box = 0;     ///< begin of the way
  int above = -1;  ///< the bend before; -1: the box itself
};

struct LayoutLayer {
  int top = 0;
  int bottom = 0;
  int passing = 0;  ///< boxes and bends from which lines lead on to the next layer
};

struct Layout {
  struct Place {
    int x = 0;  ///< of the left edge
    int y = 0;  ///< of the upper edge
    int layer = 0;
    bool joined = false;  ///< stands directly below its source
  };
  std::vector<Place> boxes;
  std::vector<LayoutBend> bends;
  std::vector<int> via;  ///< per line: the bend where it leaves the way; -1: there is none
  std::vector<LayoutLayer> layers;
};

/// Computes a layout: layers by the longest path, few crossings by barycentres, straight ways by
/// least squares.
/// @source Sugiyama, Tagawa, Toda: Methods for Visual Understanding of Hierarchical System
/// Structures, 1981. One pass of linear time per sweep: ways are shared, so that dense blocks, in
/// which every layer is read by all later ones, stay small.
Layout lay_out(const LayoutRequest& request);

}  // namespace parsimony
