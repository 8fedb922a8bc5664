// The layered graph between the steps of a layout. Private to report/.
#pragma once

#include <vector>

namespace parsimony {

/// A stack of boxes, or a place where a long line passes a layer.
struct Vertex {
  int layer = 0;
  int width = 0;
  bool is_bend = false;
  double x = 0;  ///< of its middle
  std::vector<int> above;
  std::vector<int> below;
};

struct LayeredGraph {
  std::vector<Vertex> vertices;
  std::vector<std::vector<int>> layers;  ///< vertices from left to right
};

/// Orders the vertices of every layer so that few lines cross.
void order_layers(LayeredGraph& graph);

/// Gives every vertex its x; the order stays.
void place_vertices(LayeredGraph& graph);

}  // namespace parsimony
