// Package estimate learns from observations: so far, the mean of the last few
// execution times. It keeps values only; it reads no clock.
package estimate
