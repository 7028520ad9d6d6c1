// Package estimate learns from observations: the mean of the last few execution
// times, and of the last few times that instances took to start. It keeps values
// only; it reads no clock.
package estimate
