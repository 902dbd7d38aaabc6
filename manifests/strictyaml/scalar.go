package strictyaml

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Bytes is a number of bytes, written with a unit: 64KiB, 256MiB, 1GB.
type Bytes int64

func (b Bytes) String() string { return humanize.IBytes(uint64(max(0, b))) }

// ParseBytes parses a number of bytes with its unit.
func ParseBytes(s string) (Bytes, error) {
	if s == "" || strings.TrimRight(s, "bBiIkKmMgGtT") == s {
		return 0, fmt.Errorf("expected a size with its unit, such as 256MiB, found %s", quote(s))
	}
	n, err := humanize.ParseBytes(s)
	if err != nil || n > math.MaxInt64 {
		return 0, fmt.Errorf("expected a size such as 256MiB, found %s", quote(s))
	}
	return Bytes(n), nil
}

// ParseDuration is time.ParseDuration that also takes whole days: 30d, 1d12h.
func ParseDuration(s string) (time.Duration, error) {
	bad := fmt.Errorf("expected a duration such as 30s, 10m or 30d, found %s", quote(s))
	rest := s
	var days int64
	if before, after, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(before, 10, 16)
		if err != nil {
			return 0, bad
		}
		days, rest = int64(n), after
		if rest == "" {
			return time.Duration(days) * 24 * time.Hour, nil
		}
		if strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
			return 0, bad
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil {
		return 0, bad
	}
	total := d + time.Duration(days)*24*time.Hour
	if total < d {
		return 0, bad
	}
	return total, nil
}

// wanted says in words what a type takes, with an article.
func wanted(t reflect.Type) string {
	switch t {
	case durationType:
		return "a duration such as 30s"
	case bytesType:
		return "a size such as 256MiB"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Pointer:
		return wanted(t.Elem())
	}
	return "a value"
}

// setScalar parses text into v. The tag is the YAML type of the text; an empty
// one leaves it to v.
func setScalar(v reflect.Value, text, tag string) *Fault {
	t := v.Type()
	mismatch := func() *Fault {
		f := Faultf("expected %s, found %s", wanted(t), describeScalar(text, tag))
		if t.Kind() == reflect.String && tag != "!!null" {
			f.Message += ": put it in quotes"
		}
		return f
	}
	is := func(tags ...string) bool { return tag == "" || slices.Contains(tags, tag) }
	switch t {
	case durationType:
		if tag == "!!bool" && strings.EqualFold(text, "false") {
			text, tag = "0", "" // none
		}
		if !is("!!str") && text != "0" {
			return mismatch()
		}
		d, err := ParseDuration(text)
		if err != nil {
			return Faultf("%s", err)
		}
		v.SetInt(int64(d))
		return nil
	case bytesType:
		if !is("!!str") {
			return mismatch()
		}
		n, err := ParseBytes(text)
		if err != nil {
			return Faultf("%s", err)
		}
		v.SetInt(int64(n))
		return nil
	}
	switch t.Kind() {
	case reflect.String:
		if !is("!!str", "!!timestamp") {
			return mismatch()
		}
		v.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(strings.ToLower(text))
		if !is("!!bool") || err != nil {
			f := mismatch()
			switch strings.ToLower(text) {
			case "yes", "y", "on":
				f.Suggestion = "true"
			case "no", "n", "off":
				f.Suggestion = "false"
			}
			return f
		}
		v.SetBool(b)
	case reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		if !is("!!int", "!!float") || err != nil {
			return mismatch()
		}
		v.SetFloat(n)
	case reflect.Int, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 0, t.Bits())
		if !is("!!int") || err != nil {
			return mismatch()
		}
		v.SetInt(n)
	default:
		return mismatch()
	}
	return nil
}

func describeScalar(text, tag string) string {
	switch tag {
	case "!!int", "!!float":
		return "the number " + text
	case "!!bool":
		return text
	case "!!null":
		return "nothing"
	}
	return "the string " + quote(text)
}

// inRange checks a number, duration or size against the tags min and max.
func inRange(v reflect.Value, r rules) *Fault {
	bound := func(text string) reflect.Value {
		b := reflect.New(v.Type()).Elem()
		if fault := setScalar(b, text, ""); fault != nil {
			panic("strictyaml: bound " + text + ": " + fault.Message)
		}
		return b
	}
	less := func(a, b reflect.Value) bool {
		if a.CanFloat() {
			return !(a.Float() >= b.Float())
		}
		return a.Int() < b.Int()
	}
	if r.min != "" && less(v, bound(r.min)) {
		return Faultf("must be at least %s", r.min)
	}
	if r.max != "" && less(bound(r.max), v) {
		return Faultf("must be at most %s", r.max)
	}
	return nil
}
