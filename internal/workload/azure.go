package workload

import (
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Files that LoadAzure reads.
const (
	AzureInvocations = "invocations.csv"
	AzureDurations   = "durations.csv"
	AzureMemory      = "memory.csv"
)

// AzureOptions say which part of the data LoadAzure makes a trace of.
type AzureOptions struct {
	// Seed of everything random.
	Seed uint64
	// FirstMinute is the first minute column to use, counted from 0.
	FirstMinute int
	// Minutes is how many minute columns to use; 0 is all from FirstMinute on.
	Minutes int
}

// Validate reports a field that is out of range.
func (o AzureOptions) Validate() error {
	if o.FirstMinute < 0 {
		return fmt.Errorf("workload: FirstMinute is %d; it must be at least 0", o.FirstMinute)
	}
	if o.Minutes < 0 {
		return fmt.Errorf("workload: Minutes is %d; it must be at least 0, which is all", o.Minutes)
	}
	return nil
}

// LoadAzure makes a trace of a sample of the Azure Functions trace of 2019
// (Shahrad et al., "Serverless in the Wild", USENIX ATC 2020) in the form that
// the invitro load generator uses: AzureInvocations has the columns HashOwner,
// HashApp, HashFunction and one for each minute, headed by a number or by
// minute_ and a number; AzureDurations has the same three and the columns
// Average and percentile_Average_0, _1, _25, _50, _75, _99 and _100, in
// milliseconds.
//
// The data says how many calls a minute has, not when. They are placed
// uniformly at random over the minute, each independently, which is how the
// arrivals of a Poisson process lie once their number is known. Each duration
// is drawn by inverse transform from the function's percentiles, linear between
// them. The random numbers of a function's minute depend on the seed, the
// function and the minute only: more minutes or other functions change nothing
// about it.
//
// A function's id in the trace is the first eight digits of HashFunction,
// followed by those of HashApp where that is needed to tell functions apart.
// Functions without durations are left out, with a note.
//
// AzureMemory may be missing. It has the columns HashOwner, HashApp and
// AverageAllocatedMb, which is the memory of an app; each of its functions is taken
// to need as much, and those of apps that it does not name the median of the others.
//
// It fails if a file is missing or not in this form, or has fewer minutes.
func LoadAzure(fsys fs.FS, o AzureOptions) (Trace, error) {
	if err := o.Validate(); err != nil {
		return Trace{}, err
	}
	tables, err := readAzureDurations(fsys)
	if err != nil {
		return Trace{}, err
	}
	counts, err := readAzureCounts(fsys, o)
	if err != nil {
		return Trace{}, err
	}
	t := Trace{
		Name:   fmt.Sprintf("azure minutes %s to %s", counts.minutes[0], counts.minutes[len(counts.minutes)-1]),
		Length: time.Duration(len(counts.minutes)) * time.Minute,
	}
	t.addNote("arrivals: each minute's calls of a function uniformly at random over the minute, seed %d", o.Seed)
	apps := t.drawAzure(counts.rows, tables, o)
	sortArrivals(t.Arrivals)
	memory, err := readAzureMemory(fsys)
	if err != nil {
		return Trace{}, err
	}
	t.setMemory(apps, memory)
	return t, nil
}

// drawAzure appends the arrivals of every function that has durations, and returns
// the app of each by the function's id.
func (t *Trace) drawAzure(rows []azureCounts, tables map[azureKey]durationTable, o AzureOptions) map[string]azureApp {
	apps := make(map[string]azureApp)
	var recorded, drawn float64
	withoutTable, callsWithoutTable := 0, 0
	ids := make(shortIDs)
	for _, row := range rows {
		id := ids.shorten(row.key)
		table, ok := tables[row.key]
		if !ok {
			withoutTable++
			callsWithoutTable += row.total()
			continue
		}
		apps[id] = azureApp{row.key.owner, row.key.app}
		for minute, n := range row.calls {
			rng := rand.New(rand.NewPCG(o.Seed, azureStream(row.key, o.FirstMinute+minute)))
			for range n {
				a := Arrival{
					At:       time.Duration(minute)*time.Minute + time.Duration(rng.Float64()*float64(time.Minute)),
					Function: id,
					Duration: table.quantile(rng.Float64()),
				}
				t.Arrivals = append(t.Arrivals, a)
				drawn += a.Duration.Seconds()
				recorded += table.averageMs / 1000
			}
		}
	}
	// Straight lines between far-apart percentiles overstate a long tail; people who size a
	// machine by this trace need to see by how much.
	if n := float64(len(t.Arrivals)); n > 0 {
		t.addNote("durations: drawn from each function's percentiles, linear between them; they average %.0f ms, the recorded averages %.0f ms", 1000*drawn/n, 1000*recorded/n)
	}
	if withoutTable > 0 {
		t.addNote("left out for want of durations: %d functions with %d calls", withoutTable, callsWithoutTable)
	}
	return apps
}

// setMemory notes the memory of each function's app.
func (t *Trace) setMemory(apps map[string]azureApp, memory map[azureApp]int64) {
	if len(memory) == 0 {
		return
	}
	median := slices.Sorted(maps.Values(memory))[len(memory)/2]
	t.Memory = make(map[string]int64, len(apps))
	unknown := 0
	for id, app := range apps {
		bytes, ok := memory[app]
		if !ok {
			bytes = median
			unknown++
		}
		t.Memory[id] = bytes
	}
	if unknown > 0 {
		t.addNote("memory: not recorded for %d functions, which are taken to need the median of %d MB", unknown, median>>20)
	}
}

// azureStream is the number of the random stream of a function's minute.
func azureStream(key azureKey, minute int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s/%s/%d", key.owner, key.app, key.function, minute)
	return h.Sum64()
}

// shortIDs are the ids that are taken.
type shortIDs map[string]bool

// shorten returns the shortest id of the function that is still free, and takes
// it. The last candidate is always free, because keys are unique.
func (ids shortIDs) shorten(key azureKey) string {
	function, app := prefix8(key.function), prefix8(key.app)
	id := function
	for _, longer := range []string{
		function + "-" + app,
		strings.Join([]string{key.function, key.app, key.owner}, "-"),
	} {
		if !ids[id] {
			break
		}
		id = longer
	}
	ids[id] = true
	return id
}

func prefix8(s string) string { return s[:min(8, len(s))] }
