package grammar

import (
	"maps"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// calculate returns the value of a sum: 2 + 2, 15% of 80, (3 - 1) * 4.
func calculate(text string) (string, bool) {
	s := newScan(strings.TrimRight(text, "=? "), time.Time{}, nil)
	var b strings.Builder
	for i := 0; i < len(s.toks); {
		if end, ok := s.longest(i, maps.Keys(languages().values["operator"])); ok {
			b.WriteRune(rune(languages().values["operator"][s.plain(i, end)])) //nolint:gosec // signs
			i = end
		} else if n, end, ok := s.integer(i); ok {
			b.WriteString(strconv.Itoa(n))
			i = end
		} else {
			b.WriteString(s.raw(i, i+1))
			i++
		}
	}
	signs := strings.NewReplacer(" ", "", ",", ".", "×", "*", "·", "*", "÷", "/", "−", "-", "–", "-")
	c := sum{rest: signs.Replace(b.String())}
	v := c.terms()
	if v == nil || c.rest != "" || c.operations == 0 {
		return "", false
	}
	result := v.FloatString(6)
	return strings.TrimSuffix(strings.TrimRight(result, "0"), "."), true
}

// sum evaluates an expression; a nil number is a mistake in it.
type sum struct {
	rest       string
	operations int
}

// take takes one of the signs from the beginning of the rest.
func (c *sum) take(signs string) byte {
	if c.rest == "" || strings.IndexByte(signs, c.rest[0]) < 0 {
		return 0
	}
	sign := c.rest[0]
	c.rest = c.rest[1:]
	c.operations++
	return sign
}

func (c *sum) terms() *big.Rat { return c.chain("+-", c.factors) }

func (c *sum) factors() *big.Rat { return c.chain("*/", c.number) }

// chain evaluates numbers with operations of the same rank between them.
func (c *sum) chain(signs string, next func() *big.Rat) *big.Rat {
	v := next()
	for v != nil {
		sign := c.take(signs)
		if sign == 0 {
			return v
		}
		w := next()
		switch {
		case w == nil || sign == '/' && w.Sign() == 0:
			return nil
		case sign == '+':
			v.Add(v, w)
		case sign == '-':
			v.Sub(v, w)
		case sign == '*':
			v.Mul(v, w)
		default:
			v.Quo(v, w)
		}
	}
	return nil
}

// number reads a number, a sum in brackets, or a percentage of a number.
func (c *sum) number() *big.Rat {
	if strings.HasPrefix(c.rest, "(") {
		c.rest = c.rest[1:]
		v := c.terms()
		if !strings.HasPrefix(c.rest, ")") {
			return nil
		}
		c.rest = c.rest[1:]
		return v
	}
	digits := strings.TrimLeft(c.rest, "0123456789.")
	v, ok := new(big.Rat).SetString(c.rest[:len(c.rest)-len(digits)])
	if !ok || len(c.rest)-len(digits) > 30 {
		return nil
	}
	c.rest = digits
	if c.take("%") == 0 {
		return v
	}
	v.Quo(v, big.NewRat(100, 1))
	if of := c.number(); of != nil {
		return v.Mul(v, of)
	}
	return nil
}

// plain joins the words from i up to n.
func (s *scan) plain(i, n int) string {
	all := make([]string, n-i)
	for k := range all {
		all[k] = s.toks[i+k].norm
	}
	return strings.Join(all, " ")
}
