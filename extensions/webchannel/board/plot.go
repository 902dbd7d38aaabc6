package board

import (
	"math"
	"strconv"

	"github.com/switchboard-run/switchboard/sdk/admin"
)

// plot is bars over days. The table that follows it has the figures for those who don't see it.
type plot struct {
	Title         string
	Width, Height int
	Bars          []bar
	Lines         []axis
	Labels        []label
}

type bar struct {
	X, Y, Width, Height string
	Title               string
}

type axis struct {
	X1, Y1, X2, Y2 string
	TextX, TextY   string
	Text           string
}

type label struct{ X, Y, Text string }

const (
	plotWidth, plotHeight = 800, 220
	plotTop, plotBottom   = 16, 190
	plotLeft              = 70
	plotLabels            = 7
)

// bars draws a value of each day.
func (q *request) bars(
	title string, days []admin.Usage, value func(admin.Usage) float64, shown func(admin.Usage) string,
) *plot {
	p := &plot{Title: title, Width: plotWidth, Height: plotHeight}
	most := 0.0
	for _, d := range days {
		most = max(most, value(d))
	}
	top := rounded(most)
	for _, share := range []float64{0, 0.5, 1} {
		y := float64(plotBottom) - share*(plotBottom-plotTop)
		p.Lines = append(p.Lines, axis{
			X1: number1(plotLeft), Y1: number1(y), X2: number1(plotWidth), Y2: number1(y),
			TextX: number1(plotLeft - 6), TextY: number1(y + 4), Text: short(top * share),
		})
	}
	step := float64(plotWidth-plotLeft) / float64(max(1, len(days)))
	every := max(1, (len(days)+plotLabels-1)/plotLabels)
	for i, d := range days {
		height := 0.0
		if top > 0 {
			height = value(d) / top * (plotBottom - plotTop)
		}
		x := plotLeft + float64(i)*step
		if height > 0 {
			height = max(height, 1)
			p.Bars = append(p.Bars, bar{
				X: number1(x + step*0.1), Y: number1(plotBottom - height), Width: number1(step * 0.8), Height: number1(height),
				Title: d.Name + ": " + shown(d),
			})
		}
		if i%every == 0 {
			p.Labels = append(p.Labels, label{X: number1(x + step/2), Y: number1(plotBottom + 18), Text: d.Name[len(d.Name)-5:]})
		}
	}
	return p
}

// rounded returns the next number above that is 1, 2 or 5 times a power of ten.
func rounded(n float64) float64 {
	if n <= 0 {
		return 0
	}
	power := math.Pow(10, math.Floor(math.Log10(n)))
	for _, times := range []float64{1, 2, 5} {
		if n <= times*power {
			return times * power
		}
	}
	return 10 * power
}

// short returns a number with a unit: 1.5M.
func short(n float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= unit.size {
			return strconv.FormatFloat(n/unit.size, 'g', 3, 64) + unit.name
		}
	}
	return strconv.FormatFloat(n, 'g', 3, 64)
}

func number1(n float64) string { return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64) }
