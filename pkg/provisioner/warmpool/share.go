package warmpool

import (
	"cmp"
	"slices"
)

// Share is how many of a pool's spare instances a scheduler keeps. owned is how many functions
// that could use one each scheduler owns. A scheduler that owns none keeps none. Each of the
// others keeps one before any keeps two, because a scheduler without any would never have one
// for its functions. The rest is divided in proportion, by the method of the largest
// remainder. Among equals the scheduler with the first id has precedence, otherwise the one
// that owns more. The shares add up to size if any scheduler owns such a function.
func Share(size int, owned map[string]int, scheduler string) int {
	total := 0
	var owners []string
	for id, n := range owned {
		if n > 0 {
			owners = append(owners, id)
			total += n
		}
	}
	if size <= 0 || owned[scheduler] <= 0 {
		return 0
	}
	rest := max(0, size-len(owners))
	slices.SortFunc(owners, func(a, b string) int { return cmp.Or(cmp.Compare(owned[b], owned[a]), cmp.Compare(a, b)) })
	share, left := 0, rest
	if slices.Index(owners, scheduler) < size {
		share = 1 + rest*owned[scheduler]/total
	}
	for _, id := range owners {
		left -= rest * owned[id] / total
	}
	slices.SortStableFunc(owners, func(a, b string) int { return cmp.Compare(rest*owned[b]%total, rest*owned[a]%total) })
	if slices.Index(owners, scheduler) < left {
		share++
	}
	return share
}
