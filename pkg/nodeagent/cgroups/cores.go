package cgroups

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// mostCores is how many cores a machine may have.
const mostCores = 1 << 16

// parseCores reads a list of cores, such as "0-3,7". An empty one has none.
func parseCores(list string) ([]int, error) {
	var cores []int
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		if part == "" {
			continue
		}
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 16)
		if err == nil {
			var to uint64
			to, err = strconv.ParseUint(last, 10, 16)
			for n := from; err == nil && n <= to && len(cores) < mostCores; n++ {
				cores = append(cores, int(n))
			}
		}
		if err != nil {
			return nil, fmt.Errorf("cgroups: %q is not a list of cores", list)
		}
	}
	slices.Sort(cores)
	return slices.Compact(cores), nil
}

// CountCores is how many cores a file of the kernel lists.
func CountCores(path string) (int, error) {
	list, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	cores, err := parseCores(string(list))
	if err == nil && len(cores) == 0 {
		err = errors.New("cgroups: " + path + " lists no cores")
	}
	return len(cores), err
}

// within is the part of a list of cores that is in another one. Cgroup version 2 writes all cores that the group
// above has as an empty list.
func within(list, bounds string) (string, error) {
	cores, err := parseCores(list)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(bounds) != "" {
		allowed, err := parseCores(bounds)
		if err != nil {
			return "", err
		}
		cores = slices.DeleteFunc(cores, func(n int) bool { return !slices.Contains(allowed, n) })
	}
	return FormatCores(cores), nil
}

// FormatCores writes a list of sorted cores as cpuset files have it.
func FormatCores(cores []int) string {
	var parts []string
	for i := 0; i < len(cores); {
		j := i
		for j+1 < len(cores) && cores[j+1] == cores[j]+1 {
			j++
		}
		part := strconv.Itoa(cores[i])
		if j > i {
			part += "-" + strconv.Itoa(cores[j])
		}
		parts, i = append(parts, part), j+1
	}
	return strings.Join(parts, ",")
}
