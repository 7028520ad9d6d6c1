package workload

import (
	"testing"
	"testing/fstest"
)

// FuzzAzure reads traces of anything.
func FuzzAzure(f *testing.F) {
	const durations = "HashOwner,HashApp,HashFunction,Average,Count,Minimum,Maximum,percentile_Average_0,percentile_Average_1,percentile_Average_25,percentile_Average_50,percentile_Average_75,percentile_Average_99,percentile_Average_100\n"
	f.Add([]byte("HashOwner,HashApp,HashFunction,Trigger,1,2\no,a,f,http,3,4\n"), []byte(durations+"o,a,f,5,1,1,9,1,2,3,4,5,6,7\n"), 0, 2)
	f.Add([]byte("HashOwner,HashApp,HashFunction,Trigger,minute_1\no,a,f,http,99999999999\n"), []byte(durations+"o,a,f,NaN,1,1,9,1,Inf,3,4,5,6,1e308\n"), 0, 1)
	f.Add([]byte("\"\n,"), []byte("a\n"), 1, 1)
	f.Fuzz(func(t *testing.T, counts, durations []byte, first, minutes int) {
		fsys := fstest.MapFS{AzureInvocations: {Data: counts}, AzureDurations: {Data: durations}}
		options := AzureOptions{Seed: 1, FirstMinute: first, Minutes: minutes}
		if options.Validate() != nil {
			return
		}
		read, err := readAzureCounts(fsys, options)
		// 0 means all there are.
		if err == nil && minutes > 0 && len(read.minutes) != minutes {
			t.Errorf("read %d minutes of %d", len(read.minutes), minutes)
		}
		tables, err := readAzureDurations(fsys)
		if err != nil {
			return
		}
		for _, table := range tables {
			if a, b := table.quantile(0.1), table.quantile(0.9); a < 0 || b < a {
				t.Errorf("%+v falls from %v to %v", table, a, b)
			}
		}
	})
}
