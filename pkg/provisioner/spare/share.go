package spare

import (
	"cmp"
	"maps"
	"slices"
)

// Share is how many of a pool's spare instances a scheduler keeps, if each of the
// schedulers owns so many functions that could take one. Who owns none keeps none;
// the others get in proportion, by the method of the largest remainder, of equal ones
// the scheduler whose id comes first. The shares add up to size if anybody owns
// anything.
func Share(size int, owned map[string]int, scheduler string) int {
	total := 0
	for _, n := range owned {
		total += n
	}
	if size <= 0 || owned[scheduler] == 0 {
		return 0
	}
	whole := func(id string) int { return size * owned[id] / total }
	left := size
	for id := range owned {
		left -= whole(id)
	}
	byRemainder := slices.SortedFunc(maps.Keys(owned), func(a, b string) int {
		return cmp.Or(cmp.Compare(size*owned[b]%total, size*owned[a]%total), cmp.Compare(a, b))
	})
	share := whole(scheduler)
	if slices.Index(byRemainder, scheduler) < left {
		share++
	}
	return share
}
