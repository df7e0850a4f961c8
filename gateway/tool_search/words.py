"""The words of a tool's definition and of a question, in a form in which they meet."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice
from typing import Any, NamedTuple

import snowballstemmer

from core.folding import folded
from registry.versions.search_index import UNSPACED, argument_texts, bigrams, parted, split

# A definition may have 256 KB; a question is a sentence.
MAX_TEXT, MAX_ASKED = 8_000, 30
# They stand in questions and descriptions alike and tell no tool from another.
_EMPTY_WORDS = """
a about after again all also an and another any are as at away back be been before being but by can
could did do does doing done down each else ever every for from give go going had has have having he
her here him his how i if in into is it its just let like long make many may me more most much must
my need no not now of off on once one only onto or other our out over please put same say she should
so some someone something still such take tell than that the their them then there these they thing
this those through to too under until up us use used using very want was we were what when where
whether which while who whom whose why will with without would yet you your
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
_EMPTY_CHINESE = frozenset(
    "的了吗呢吧啊请我你您他她它们个一是有和与或及在把被将要想能可以帮给让这那对怎么样什"
)
# Verbs and nouns that servers use for the same thing: each finds the others, for less.
_SYNONYMS = """
create add new make insert register open set
delete remove drop destroy erase discard wipe clear purge
update edit change modify set alter patch adjust rename reschedule postpone move
get fetch read show view retrieve display lookup see check
list enumerate browse all
search find query look filter grep
send post deliver write notify
cancel abort stop end terminate revoke
start run launch trigger execute begin
close resolve finish complete transition fix
reply respond answer
approve accept confirm sign
reject decline deny
assign delegate owner
share invite grant permission access
pay charge collect payment money
refund reimburse
balance money account remaining left
price cost rate quote estimate
remind reminder overdue chase
user person member people employee colleague staff
customer client payer buyer contact
lead prospect deal opportunity
ticket issue bug task defect story
mail email inbox
message chat dm channel
comment remark note
picture image photo
folder directory
file document object blob
appointment meeting event calendar
schedule calendar
bill invoice
purchase order
deploy release rollout
rollback revert undo
machine server host node instance
container pod
error failure exception
alert alarm monitor incident page
oncall duty
metric measure statistic usage
log trace
upload store save put
download fetch get
branch repository repo
pull merge request
dns domain subdomain record zone
flight plane fly airline
hotel room accommodation
train railway ticket
weather temperature forecast rain warm cold wind
route direction drive walk way
nearby close around near place poi
stock inventory goods warehouse
parcel package shipment shipping delivery
holiday vacation leave absence timeoff
salary payroll wage
translate translation language
sheet spreadsheet table cell
wiki page article knowledge
flag toggle feature switch
signature sign contract envelope
subscription plan membership
发送 推送 群发 通知
创建 新建 添加 新增 建立 登记 提交 发起
删除 移除 清除 去掉
修改 更新 编辑 变更 调整 改
查询 查看 搜索 检索 查找 获取 查 看看 找
取消 撤销 撤回 作废
预订 预定 订
路线 导航 开车 驾车 步行 公交 怎么走
天气 气温 温度 多少度 下雨 降雨 降水 预报
雾霾 空气质量 污染
附近 周边 周围
餐厅 饭馆 饭店
地址 位置 地方 坐标 地点
快递 物流 包裹 运单 寄
运费 多少钱 价格 费用
邮件 邮箱
消息 通知
员工 同事 人员 成员
部门 组织 团队
客户 顾客 买家
付款 支付 缴费
退款 退钱 退票
订单 单子
库存 存货 余量 商品
仓库 仓
调拨 调货
年假 假期 请假 休假
余额 剩余 几天 还有
打卡 考勤 签到 补卡
报销 费用
发票 开票
翻译 译成 翻成 译法
术语 词汇 专业词
会议室 会议
火车 高铁 车票 车次
停靠 经停 站点
日志 报错 错误
告警 报警 警报
值班 轮值
上线 发布 部署
回滚 回退
工单 投诉
审批 批准 同意 驳回
慢查询 慢sql
"""
# The same in the other language, for tools that have no words in the question's.
_TRANSLATIONS = """
weather forecast 天气 预报
temperature 气温 温度
rain 下雨 降雨
send post 发送 推送
mail email 邮件 邮箱
message sms 消息 短信
notify notification 通知
create new add 创建 新建 添加 新增
delete remove 删除 移除
update edit change modify 修改 更新 编辑
get fetch read show view 查看 获取 读取
list 列出 列表
search find query 搜索 查找 检索 查询
cancel 取消 撤销
book reserve reservation 预订 预定
route direction navigation 路线 导航
plan 规划 计划
map 地图
address location place 地址 位置
restaurant 餐厅 饭店
hotel 酒店 宾馆
flight plane 航班 机票
train railway 火车 高铁
package parcel shipment 快递 包裹 物流
price cost 价格 费用
pay payment 支付 付款
refund 退款
order purchase 订单 采购
stock inventory 库存
goods product item 商品 产品
warehouse 仓库
customer client 客户 顾客
employee staff colleague 员工 同事
user person people 用户 人员
department team 部门 团队
file document 文件 文档
folder directory 文件夹 目录
picture image photo 图片 照片
upload 上传
download 下载
write save 写入 保存
calculate compute evaluate 计算 算式
average mean 平均
unit convert conversion 单位 换算
text word 文本 文字 字数
count statistic 统计 数量
translate translation 翻译
summary summarize 摘要 总结
report 报告 报表
meeting appointment 会议
calendar schedule 日程 日历
holiday leave vacation 假期 请假 年假
salary payroll wage 工资 薪资
approve approval 审批 批准
reject decline 驳回 拒绝
invoice bill 发票 账单
expense reimburse 报销
contract 合同
account 账户 账号
balance 余额
password 密码
permission access 权限
log 日志
error failure 错误 失败 报错
alert alarm 告警 警报
deploy release 部署 发布
rollback revert 回滚
server host machine 服务器 主机
database sql 数据库
code 代码
branch 分支
merge 合并
repository repo 仓库
issue bug 问题 缺陷
task 任务
ticket 工单
comment 评论
share 分享 共享
news 新闻
time date 时间 日期
city 城市
currency exchange 汇率 货币
"""
# A stemmer keeps the word that it is at: each thread has its own.
_stemmers = threading.local()


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    if not hasattr(_stemmers, "english"):
        _stemmers.english = snowballstemmer.stemmer("english")
    return str(_stemmers.english.stemWord(word))


def words(text: str) -> Iterator[str]:
    """Stems of words, and of scripts that set no spaces between words every two characters."""
    # Folding can make it longer.
    text = folded(text[:MAX_TEXT])[:MAX_TEXT]
    for piece in split(parted(text)):
        word = piece.lower()
        if word not in _EMPTY and not UNSPACED.match(word):
            yield _stem(word)
    yield from _runs(text)


def _runs(text: str) -> Iterator[str]:
    for pair in bigrams(text):
        if not _EMPTY_CHINESE.issuperset(pair):
            yield pair


def weighed(content: Mapping[str, Any], server: str, labels: Iterable[str]) -> dict[str, float]:
    """Each word of a definition with its weight: a name says more than what is said of it."""
    found: dict[str, float] = {}
    for weight, texts in _texts(content, server, labels):
        for word in chain.from_iterable(map(words, texts)):
            found[word] = found.get(word, 0.0) + weight
    return found


def _texts(
    content: Mapping[str, Any], server: str, labels: Iterable[str]
) -> Iterator[tuple[float, list[str]]]:
    name, title = str(content.get("name") or ""), str(content.get("title") or "")
    names, descriptions = argument_texts(content)
    yield 2.0, [name, title]
    yield 1.0, [server, *labels]
    yield 1.0, [str(content.get("description") or "")]
    yield 0.5, names
    yield 0.3, descriptions


class Meant(NamedTuple):
    """Other words for a word: of its language, and of the other one."""

    synonyms: frozenset[str]
    translations: frozenset[str]


def meant(question: str) -> dict[str, Meant]:
    """The words of a question, each with others for it."""
    asked = islice(dict.fromkeys(words(question)), MAX_ASKED)
    synonyms, translations = _others(_SYNONYMS), _others(_TRANSLATIONS)
    none: frozenset[str] = frozenset()
    return {word: Meant(synonyms.get(word, none), translations.get(word, none)) for word in asked}


@lru_cache(maxsize=2)
def _others(lines: str) -> dict[str, frozenset[str]]:
    """By word, the other words of its lines."""
    found: dict[str, set[str]] = {}
    for line in lines.strip().splitlines():
        group = {word for one in line.split() for word in words(one)}
        for word in group:
            found.setdefault(word, set()).update(group - {word})
    return {word: frozenset(others) for word, others in found.items()}
