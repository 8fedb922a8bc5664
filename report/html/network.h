// The picture of a network as a self-contained HTML page.
#pragma once

#include <string>

#include "parsimony/report/network/picture.h"

namespace parsimony {

/// Boxes to scroll, zoom and click. Names in the picture are escaped; the page loads nothing and
/// runs only its own script.
///
///     write_file("network.html", to_html(picture_of(graph, facts, coupling, probe)));
std::string to_html(const NetworkPicture& picture);

}  // namespace parsimony
