// Package estimate computes the mean of a function's last few execution times and of its last
// few start times. It holds values only and reads no clock.
package estimate
