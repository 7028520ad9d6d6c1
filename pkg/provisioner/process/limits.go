package process

import (
	"math"

	corev1 "k8s.io/api/core/v1"
)

// dataHeadroom is what the data limit of a process lies above the memory limit
// of its function, in bytes.
//
// Without cgroups the kernel has no limit on resident memory. The limit on
// address space (RLIMIT_AS) cannot stand in for it: an idle Node.js reserves
// 700 MiB and an idle Go server 1.5 GiB that they never touch. The limit on
// data (RLIMIT_DATA) counts private writable memory only, and comes close: 48
// MiB for the same Node.js, 44 MiB of which are resident. Go however maps its
// heap as writable 64 MiB at a time and its tables beside it, 105 MiB in all
// for a server that uses 7, and dies if it cannot. With this headroom a function
// that keeps to its limit always runs, and one that runs away is stopped.
const dataHeadroom = 128 << 20

// limits are the bounds of one function's process; 0 means none.
type limits struct {
	// dataBytes is the bound on private writable memory.
	dataBytes uint64
	// cores is the number of cores that it may run on.
	cores int
}

func limitsOf(r corev1.ResourceList) limits {
	var l limits
	if bytes := r.Memory().Value(); bytes > 0 {
		l.dataBytes = uint64(bytes) + dataHeadroom
	}
	if milli := r.Cpu().MilliValue(); milli > 0 {
		l.cores = int(math.Ceil(float64(milli) / 1000))
	}
	return l
}

// pickCores picks n of the cores in turn from position next, and returns where to continue. It
// picks none if n is no restriction.
func pickCores(cores []int, next, n int) (picked []int, after int) {
	if n <= 0 || n >= len(cores) {
		return nil, next
	}
	for i := range n {
		picked = append(picked, cores[(next+i)%len(cores)])
	}
	return picked, (next + n) % len(cores)
}
