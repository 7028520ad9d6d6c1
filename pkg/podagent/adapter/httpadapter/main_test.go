package httpadapter

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(benchFunction) != "" {
		serveBenchFunction()
		return
	}
	goleak.VerifyTestMain(m)
}
