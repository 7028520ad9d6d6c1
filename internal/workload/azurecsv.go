package workload

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"
)

// azureKey identifies a function; the three hashes together are unique.
type azureKey struct{ owner, app, function string }

// azureCounts are one function's calls in each minute that was asked for.
type azureCounts struct {
	key   azureKey
	calls []int
}

func (c azureCounts) total() int {
	sum := 0
	for _, n := range c.calls {
		sum += n
	}
	return sum
}

// azureInvocations is what was asked for of AzureInvocations.
type azureInvocations struct {
	// minutes are the headings of the minute columns.
	minutes []string
	rows    []azureCounts
}

// percentiles are the shares that durationTable has a value for.
var percentiles = [...]float64{0, .01, .25, .50, .75, .99, 1}

var percentileColumns = [len(percentiles)]string{
	"percentile_Average_0", "percentile_Average_1", "percentile_Average_25", "percentile_Average_50",
	"percentile_Average_75", "percentile_Average_99", "percentile_Average_100",
}

// durationTable is one function's distribution of durations in milliseconds,
// not falling from one percentile to the next.
type durationTable struct {
	ms        [len(percentiles)]float64
	averageMs float64
}

// quantile is the duration at the share u of the distribution, 0 to 1.
func (d durationTable) quantile(u float64) time.Duration {
	i := 1
	for i < len(percentiles)-1 && u > percentiles[i] {
		i++
	}
	part := (u - percentiles[i-1]) / (percentiles[i] - percentiles[i-1])
	ms := d.ms[i-1] + part*(d.ms[i]-d.ms[i-1])
	return time.Duration(ms * float64(time.Millisecond))
}

func readAzureCounts(fsys fs.FS, o AzureOptions) (azureInvocations, error) {
	var out azureInvocations
	seen := make(map[azureKey]bool)
	var columns []int
	err := readCSV(fsys, AzureInvocations, func(header csvHeader) error {
		var all []int
		for i, name := range header.names {
			if _, err := strconv.Atoi(strings.TrimPrefix(name, "minute_")); err == nil {
				all = append(all, i)
			}
		}
		if o.Minutes == 0 {
			o.Minutes = max(1, len(all)-o.FirstMinute)
		}
		if o.FirstMinute > len(all) || o.Minutes > len(all)-o.FirstMinute {
			return fmt.Errorf("has %d minutes, but %d from minute %d on were asked for; ask for fewer", len(all), o.Minutes, o.FirstMinute)
		}
		columns = all[o.FirstMinute : o.FirstMinute+o.Minutes]
		for _, i := range columns {
			out.minutes = append(out.minutes, strings.TrimPrefix(header.names[i], "minute_"))
		}
		return nil
	}, func(row csvRow) error {
		counts := azureCounts{key: row.key(), calls: make([]int, len(columns))}
		if seen[counts.key] {
			return fmt.Errorf("function %s occurs twice; remove one row", counts.key.function)
		}
		seen[counts.key] = true
		for i, column := range columns {
			n, err := strconv.ParseUint(row.fields[column], 10, 31)
			if err != nil {
				return fmt.Errorf("minute %s: %q is not a number of calls", out.minutes[i], row.fields[column])
			}
			counts.calls[i] = int(n)
		}
		out.rows = append(out.rows, counts)
		return nil
	})
	return out, err
}

func readAzureDurations(fsys fs.FS) (map[azureKey]durationTable, error) {
	tables := make(map[azureKey]durationTable)
	err := readCSV(fsys, AzureDurations, func(header csvHeader) error {
		return header.need(append(percentileColumns[:], "Average")...)
	}, func(row csvRow) error {
		var table durationTable
		var err error
		if table.averageMs, err = row.milliseconds("Average"); err != nil {
			return err
		}
		for i, column := range percentileColumns {
			if table.ms[i], err = row.milliseconds(column); err != nil {
				return err
			}
			if i > 0 && table.ms[i] < table.ms[i-1] {
				return fmt.Errorf("%s is less than %s; percentiles must not fall", column, percentileColumns[i-1])
			}
		}
		if _, twice := tables[row.key()]; twice {
			return fmt.Errorf("function %s occurs twice; remove one row", row.key().function)
		}
		tables[row.key()] = table
		return nil
	})
	return tables, err
}

// azureApp identifies an app.
type azureApp struct{ owner, app string }

// maxMegabytes bounds the memory of an app, so that its bytes stay within 63 bits.
const maxMegabytes = 1 << 30

// readAzureMemory reads the memory of apps in bytes; none if there is no such file.
func readAzureMemory(fsys fs.FS) (map[azureApp]int64, error) {
	if _, err := fs.Stat(fsys, AzureMemory); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	const column = "AverageAllocatedMb"
	memory := make(map[azureApp]int64)
	err := readCSVOf(fsys, AzureMemory, []string{"HashOwner", "HashApp"}, func(header csvHeader) error {
		return header.need(column)
	}, func(row csvRow) error {
		megabytes, err := strconv.ParseFloat(row.field(column), 64)
		if err != nil || !(megabytes >= 0 && megabytes <= maxMegabytes) {
			return fmt.Errorf("%s: %q is not a number of megabytes", column, row.field(column))
		}
		memory[azureApp{row.field("HashOwner"), row.field("HashApp")}] = int64(megabytes * (1 << 20))
		return nil
	})
	return memory, err
}

// csvHeader is the first line of a file.
type csvHeader struct {
	names []string
	index map[string]int
}

// need reports a column that is missing.
func (h csvHeader) need(columns ...string) error {
	for _, c := range columns {
		if _, ok := h.index[c]; !ok {
			return fmt.Errorf("has no column %s", c)
		}
	}
	return nil
}

// csvRow is a further line of a file, with as many fields as the header.
type csvRow struct {
	header csvHeader
	fields []string
}

func (r csvRow) field(column string) string { return r.fields[r.header.index[column]] }

func (r csvRow) key() azureKey {
	return azureKey{owner: r.field("HashOwner"), app: r.field("HashApp"), function: r.field("HashFunction")}
}

func (r csvRow) milliseconds(column string) (float64, error) {
	ms, err := strconv.ParseFloat(r.field(column), 64)
	// A duration in nanoseconds must stay within 63 bits.
	if err != nil || !(ms >= 0) || ms*float64(time.Millisecond) >= math.MaxInt64 {
		return 0, fmt.Errorf("%s: %q is not a number of milliseconds", column, r.field(column))
	}
	return ms, nil
}

// readCSV is readCSVOf a file about functions, which has the three hashes.
func readCSV(fsys fs.FS, name string, begin func(csvHeader) error, next func(csvRow) error) error {
	return readCSVOf(fsys, name, []string{"HashOwner", "HashApp", "HashFunction"}, begin, next)
}

// readCSVOf calls begin with the header of a file that has some columns and then next
// with each row. Errors name the file and the line.
func readCSVOf(fsys fs.FS, name string, columns []string, begin func(csvHeader) error, next func(csvRow) error) error {
	f, err := fsys.Open(name)
	if err != nil {
		return fmt.Errorf("workload: the trace needs the file %s: %w", name, err)
	}
	defer f.Close()
	reader := csv.NewReader(f)
	names, err := reader.Read()
	if err != nil {
		return fmt.Errorf("workload: %s has no header: %w", name, err)
	}
	header := csvHeader{names: names, index: make(map[string]int)}
	for i, n := range names {
		header.index[n] = i
	}
	if err := errors.Join(header.need(columns...), begin(header)); err != nil {
		return fmt.Errorf("workload: %s %w", name, err)
	}
	for {
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("workload: %s: %w", name, err)
		}
		if err := next(csvRow{header, fields}); err != nil {
			line, _ := reader.FieldPos(0)
			return fmt.Errorf("workload: %s line %d: %w", name, line, err)
		}
	}
}
