package rulefile

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Rule is one rule, of which either Alert or Record is set.
type Rule struct {
	Alert       string            `yaml:"alert"`
	Record      string            `yaml:"record"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// Read returns the rules of files, in their order.
func Read(paths ...string) ([]Rule, error) {
	var rules []Rule
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var content struct {
			Groups []struct {
				Rules []Rule `yaml:"rules"`
			} `yaml:"groups"`
		}
		if err := yaml.Unmarshal(text, &content); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, group := range content.Groups {
			rules = append(rules, group.Rules...)
		}
	}
	return rules, nil
}

var (
	fields  = regexp.MustCompile(`(?m)^(\s*(?:for|interval): )(\d+)(ms|s|m|h)$`)
	windows = regexp.MustCompile(`(\[|\boffset )(\d+)(ms|s|m|h)(\]|\b)`)
)

var units = map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour}

// ShortenInto writes the chart's rule files into a folder, with times that Shorten has
// divided, and returns the paths of the new ones. It is to be called at the root of the
// module.
func ShortenInto(dir string, factor float64, shortest time.Duration) (paths []string, err error) {
	files, err := OfChart()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(path, []byte(Shorten(string(text), factor, shortest)), 0o600); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// OfChart are the paths of the chart's rule files, from the root of the module.
func OfChart() ([]string, error) {
	files, err := filepath.Glob("charts/windlass/rules/*.yaml")
	if err == nil && len(files) == 0 {
		err = errors.New("no rules in charts/windlass/rules: run this at the root of the module")
	}
	return files, err
}

const (
	// longestFor is that of WindlassOwnershipFlapping, which must outlast the moves of one
	// failover.
	longestFor = 15 * time.Minute
	forever    = time.Duration(math.MaxInt64)
)

// Shorten divides every time in the text of a rule file by factor, which is at
// least 1. None becomes shorter than shortest, unless it was. What an alert waits
// for longer than 15 minutes counts as these: a shorter for needs no more scrapes, as
// a shorter window does.
func Shorten(text string, factor float64, shortest time.Duration) string {
	text = fields.ReplaceAllStringFunc(text, func(line string) string {
		part := fields.FindStringSubmatch(line)
		longest := forever
		if strings.HasSuffix(part[1], "for: ") {
			longest = longestFor
		}
		return part[1] + shortened(part[2], part[3], longest, factor, shortest)
	})
	return windows.ReplaceAllStringFunc(text, func(window string) string {
		part := windows.FindStringSubmatch(window)
		return part[1] + shortened(part[2], part[3], forever, factor, shortest) + part[4]
	})
}

func shortened(number, unit string, longest time.Duration, factor float64, shortest time.Duration) string {
	n, err := strconv.Atoi(number)
	if err != nil {
		return number + unit // Too large for a number of anything.
	}
	whole := min(time.Duration(n)*units[unit], longest)
	short := max(time.Duration(float64(whole)/factor), min(whole, shortest))
	return strconv.FormatInt(short.Milliseconds(), 10) + "ms"
}
