package cli

import (
	"errors"
	"strconv"

	"github.com/spf13/pflag"
)

// flagError says in plain words what is wrong with a flag.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return usagef("%v", err)
	}
	name, value := "--"+invalid.GetFlag().Name, invalid.GetValue()
	switch kind := invalid.GetFlag().Value.Type(); kind {
	case "duration":
		example := "30s"
		if _, err := strconv.ParseFloat(value, 64); err == nil {
			example = value + "s"
		}
		return usagef("%s %q is not a duration; write for example %s", name, value, example)
	case "bool":
		return usagef("%s=%s is neither true nor false; write one of the two, or %s alone for true", name, value, name)
	case "int", "int32", "int64", "uint", "uint32", "uint64":
		if errors.Is(err, strconv.ErrRange) {
			return usagef("%s %s is too large or too small; write a number that makes sense there", name, value)
		}
		return usagef("%s %q is not a whole number; write for example 3", name, value)
	case "float32", "float64":
		return usagef("%s %q is not a number; write for example 0.5", name, value)
	}
	return usagef("%s %q: %v", name, value, errors.Unwrap(invalid))
}
