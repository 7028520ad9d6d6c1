package spelling

import "math"

// longest is the longest text in bytes that is compared: the time grows with the square.
const longest = 64

// Distance is how many bytes must be added, removed, changed or swapped with their
// neighbour to make b of a. Texts that are long are far from everything.
func Distance(a, b string) int {
	if len(a) > longest || len(b) > longest {
		return math.MaxInt
	}
	var before, row []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row = []int{i}
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			least := min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				least = min(least, before[j-2]+1)
			}
			row = append(row, least)
		}
		before, last = last, row
	}
	return last[len(b)]
}
