package warmpool

import (
	"cmp"
	"slices"
)

// Share is how many of a pool's spare instances a scheduler keeps, if each of the
// schedulers owns so many functions that could take one. Who owns none keeps none. Of
// the others each keeps one before any keeps two, since the functions of a scheduler
// without any would never find one; the rest goes in proportion, by the method of the
// largest remainder. Of equal ones the scheduler whose id comes first has precedence,
// of others the one that owns more. The shares add up to size if anybody owns anything.
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
