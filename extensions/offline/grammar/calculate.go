package grammar

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"maps"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
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
	expression := signs.Replace(b.String())
	if strings.Trim(expression, "0123456789.+-*/%()") != "" || len(expression) > 200 {
		return "", false
	}
	expression = leadingZeros.ReplaceAllString(expression, "$1$2")
	parsed, err := parser.ParseExpr(percent.ReplaceAllString(expression, "($1*$2/100)"))
	if _, number := parsed.(*ast.BasicLit); err != nil || number {
		return "", false
	}
	v := value(parsed)
	if v == nil {
		return "", false
	}
	result := v.FloatString(6)
	return strings.TrimSuffix(strings.TrimRight(result, "0"), "."), true
}

var (
	leadingZeros = pattern.New(`(^|[^0-9.])0+([0-9])`) // they make a number octal in Go
	percent      = pattern.New(`([0-9.]+)%([0-9.]+)`)
)

// value is the value of an expression, nil if it has none.
func value(e ast.Expr) *big.Rat {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return value(e.X)
	case *ast.BasicLit:
		v, _ := new(big.Rat).SetString(e.Value)
		return v
	case *ast.BinaryExpr:
		x, y := value(e.X), value(e.Y)
		switch {
		case x == nil || y == nil:
		case e.Op == gotoken.ADD:
			return x.Add(x, y)
		case e.Op == gotoken.SUB:
			return x.Sub(x, y)
		case e.Op == gotoken.MUL:
			return x.Mul(x, y)
		case e.Op == gotoken.QUO && y.Sign() != 0:
			return x.Quo(x, y)
		}
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
