// Package near finds the known name that a misspelled one was probably meant to be.
package near

import "strings"

// Best returns the known name that was probably meant, "" if none is near.
func Best(got string, known []string) string {
	g := normal(got)
	if g == "" || len(g) > 64 {
		return ""
	}
	best, bestDistance := "", 1+max(1, min(3, len(g)/3))
	for _, k := range known {
		if d := Distance(g, normal(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	if best != "" || len(g) < 3 {
		return best
	}
	for _, k := range known {
		if strings.HasPrefix(normal(k), g) {
			return k
		}
	}
	return ""
}

func normal(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "_")) }

// Distance is the number of insertions, deletions, replacements and swaps of
// neighbors that turn a into b.
func Distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			replace := rows[i-1][j-1]
			if x[i-1] != y[j-1] {
				replace++
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, replace)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(x)][len(y)]
}
