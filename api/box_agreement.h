// Whether a detector still finds what the dense network found.
#pragma once

#include "parsimony/api/output_metrics.h"

namespace parsimony {

/// The share of the dense network's boxes of a confidence of at least 0.3 for which the network has
/// one of the same class with an intersection over union of at least 0.5; 1 without any. Of a
/// class' boxes that overlap by more than 0.5 the most confident one counts.
///
/// An output has centre, width and height of boxes, and the confidences of their classes: rows
/// [boxes, 5 + classes], where that of an object comes before them (YOLOv5), or columns
/// [4 + classes, boxes], where it does not (YOLOv8). There are more boxes than numbers of each.
/// @throws ModelError for other shapes
double boxes_found_again(const Answers& answers);

}  // namespace parsimony
