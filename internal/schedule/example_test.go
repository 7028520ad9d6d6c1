package schedule_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/internal/schedule"
)

// At least five instances from 8:00 on in Berlin, where summer time begins on March 29th.
func Example() {
	start, err := schedule.ParseStart("0 8 * * 1-5")
	if err != nil {
		panic(err)
	}
	berlin, err := schedule.ParseTimeZone("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	windows := []schedule.Window{{Start: start, Zone: berlin, Duration: 10 * time.Hour, Min: 5}}
	for _, day := range []int{27, 30} {
		now := time.Date(2026, time.March, day, 6, 30, 0, 0, time.UTC)
		least, until := schedule.Floor(windows, now)
		fmt.Println(now.Format("Mon 15:04"), "least", least, "until", until.UTC().Format("Mon 15:04"))
	}
	// Output:
	// Fri 06:30 least 0 until Fri 07:00
	// Mon 06:30 least 5 until Mon 16:00
}
