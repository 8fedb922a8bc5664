// Closed-form least squares from sums over samples: what recovery refits layers with.
#pragma once

#include <Eigen/Core>

namespace parsimony {

/// What a linear map is fitted to, summed over samples, so that memory does not grow with them.
struct LeastSquaresSums {
  Eigen::MatrixXd second;  ///< G = Σ x xᵀ, [in, in]
  Eigen::MatrixXd cross;   ///< C = Σ y xᵀ, [out, in]
};

/// The map that comes closest to y = W x:
///
///     W = argmin Σ ‖y − W x‖² + λ ‖W‖²  =  C (G + λ I)⁻¹,     λ = ridge · trace(G) / in
///
/// With y what a layer's answers lack, W is the change of its weights, and λ draws it towards no
/// change. By LDLT in double.
/// @param ridge  ≥ 0, without unit; 0 is plain least squares, whose W is not unique where G is
///               singular
/// @returns [out, in]; zeros if no sample had anything but zeros
/// @throws ModelError if the sums' sizes do not fit, or hold what is no number
/// @source Hoerl and Kennard, Ridge Regression, Technometrics 1970; He, Zhang, Sun, Channel Pruning
/// for Accelerating Very Deep Neural Networks, ICCV 2017 (its reconstruction step)
Eigen::MatrixXd least_squares(const LeastSquaresSums& sums, double ridge);

}  // namespace parsimony
