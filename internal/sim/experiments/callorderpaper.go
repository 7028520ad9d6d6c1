package experiments

import "math"

// zukTable is the paper's Table III: the average response in seconds by cores and intensity, of
// OpenWhisk, FIFO, SEPT, FC, EECT and RECT. FC, EECT and RECT of 20 cores and intensity 40 are
// means of the legible runs of its Table IV.
var zukTable = map[[2]int][6]float64{
	{5, 30}:   {3.79, 10.79, 5.58, 5.54, 6.43, 6.74},
	{5, 40}:   {7.84, 21.73, 8.01, 8.04, 12.68, 12.90},
	{5, 60}:   {31.54, 46.78, 13.94, 14.24, 30.11, 32.78},
	{5, 90}:   {76.56, 85.57, 23.44, 22.93, 58.73, 60.41},
	{5, 120}:  {120.51, 124.95, 33.54, 32.50, 86.76, 90.74},
	{10, 30}:  {14.78, 36.42, 12.52, 10.67, 13.22, 12.15},
	{10, 40}:  {64.43, 58.29, 17.01, 14.52, 21.36, 20.37},
	{10, 60}:  {123.36, 101.76, 25.14, 22.65, 40.93, 40.42},
	{10, 90}:  {163.41, 166.79, 39.65, 34.90, 68.52, 72.55},
	{10, 120}: {340.28, 233.94, 54.96, 49.48, 102.92, 104.77},
	{20, 30}:  {157.13, 85.78, 24.95, 22.88, 27.08, 27.18},
	{20, 40}:  {244.45, 123.64, 33.92, 29.7, 41.5, 39.7},
	{20, 60}:  {369.33, 206.81, 50.62, 42.92, 71.46, 72.19},
	{20, 90}:  {595.82, 326.33, 80.59, 65.40, 125.19, 121.63},
	{20, 120}: {833.48, 441.81, 111.86, 91.91, 176.54, 169.21},
}

// zukPaper is the paper's average response of a cell with an order, NaN if it has none. Its
// baseline stands beside no order.
func zukPaper(c zukCell, policy string) float64 {
	row, known := zukTable[[2]int{c.cores, c.intensity}]
	for i, name := range []string{"none", "fifo", "sept", "fair-choice", "eect", "rect"} {
		if known && name == policy {
			return row[i]
		}
	}
	return math.NaN()
}
